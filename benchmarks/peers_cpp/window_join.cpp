// The index-based window join, tuple by tuple, over the ordered sets of Abseil and tlx.
//
// A library for benchmarks/pim_tree.py, which gives it the same arrivals as our own joins and
// compares count and fingerprint of every tuple. A set has the entries (key, position) of a side's
// window, as two words of 64 bits or packed into one (keys of 31 bits, positions of 32). Memory is
// malloc's, or an arena of huge pages with a free list for each size of node.

#include <sys/mman.h>

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <map>
#include <memory>
#include <new>
#include <string>
#include <utility>
#include <vector>

#if __has_include(<absl/container/btree_set.h>)
#include <absl/container/btree_set.h>
#define HAS_ABSL
#endif
#if __has_include(<tlx/container/btree_set.hpp>)
#include <tlx/container/btree_set.hpp>
#define HAS_TLX
#endif

namespace {

class Arena {
public:
    explicit Arena(bool huge_pages) : huge_pages_(huge_pages) {}
    Arena(const Arena&) = delete;
    Arena& operator=(const Arena&) = delete;
    ~Arena() {
        for (auto [chunk, bytes] : chunks_) munmap(chunk, bytes);
    }

    void* allocate(size_t bytes) {
        if (!huge_pages_) return std::malloc(bytes);
        bytes = (bytes + line - 1) / line * line;
        void*& free = free_list(bytes);
        if (free != nullptr) {
            void* room = free;
            std::memcpy(&free, room, sizeof free);
            return room;
        }
        if (next_ + bytes > end_) add_chunk(bytes);
        void* room = next_;
        next_ += bytes;
        return room;
    }

    void release(void* room, size_t bytes) {
        if (!huge_pages_) return std::free(room);
        void*& free = free_list((bytes + line - 1) / line * line);
        std::memcpy(room, &free, sizeof free);
        free = room;
    }

private:
    static constexpr size_t line = 64, huge_page = size_t{2} << 20, chunk_bytes = size_t{64} << 20;

    void*& free_list(size_t bytes) {  // Nodes have very few sizes.
        for (auto& [size, free] : free_)
            if (size == bytes) return free;
        return free_.emplace_back(bytes, nullptr).second;
    }

    void add_chunk(size_t bytes) {
        bytes = std::max(bytes, chunk_bytes) + huge_page;
        void* chunk =
            mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        if (chunk == MAP_FAILED) throw std::bad_alloc();
        madvise(chunk, bytes, MADV_HUGEPAGE);
        chunks_.emplace_back(chunk, bytes);
        auto place = reinterpret_cast<uintptr_t>(chunk);
        next_ = reinterpret_cast<char*>((place + huge_page - 1) / huge_page * huge_page);
        end_ = static_cast<char*>(chunk) + bytes;
    }

    bool huge_pages_;
    char *next_ = nullptr, *end_ = nullptr;
    std::vector<std::pair<size_t, void*>> free_;
    std::vector<std::pair<void*, size_t>> chunks_;
};

template <class T>
struct Allocator {
    using value_type = T;
    Arena* arena;

    explicit Allocator(Arena* arena) : arena(arena) {}
    template <class U>
    Allocator(const Allocator<U>& other) : arena(other.arena) {}
    T* allocate(size_t n) { return static_cast<T*>(arena->allocate(n * sizeof(T))); }
    void deallocate(T* room, size_t n) { arena->release(room, n * sizeof(T)); }
    template <class U>
    bool operator==(const Allocator<U>& other) const { return arena == other.arena; }
    template <class U>
    bool operator!=(const Allocator<U>& other) const { return arena != other.arena; }
};

struct Wide {
    using Entry = std::pair<int64_t, int64_t>;
    static Entry entry(int64_t key, int64_t position) { return {key, position}; }
    static int64_t key(const Entry& entry) { return entry.first; }
    static int64_t position(const Entry& entry) { return entry.second; }
};

struct Packed {
    using Entry = uint64_t;
    static Entry entry(int64_t key, int64_t position) {
        return static_cast<uint64_t>(std::max<int64_t>(key, 0)) << 32 | static_cast<uint32_t>(position);
    }
    static int64_t key(Entry entry) { return static_cast<int64_t>(entry >> 32); }
    static int64_t position(Entry entry) { return static_cast<int64_t>(entry & 0xFFFFFFFF); }
};

uint64_t splitmix64(uint64_t z) {
    z += 0x9E3779B97F4A7C15;
    z = (z ^ z >> 30) * 0xBF58476D1CE4E5B9;
    z = (z ^ z >> 27) * 0x94D049BB133111EB;
    return z ^ z >> 31;
}

struct Rows {
    int64_t count;
    const int64_t *side, *position, *key, *low, *high, *start;
};

struct Join {
    virtual ~Join() = default;
    virtual void run(const Rows& rows, int64_t* count, uint64_t* fingerprint) = 0;
};

template <class Set, class Layout>
class SetJoin : public Join {
public:
    explicit SetJoin(bool huge_pages)
        : arena_(huge_pages), sets_{Set(allocator()), Set(allocator())} {}

    void run(const Rows& rows, int64_t* count, uint64_t* fingerprint) override {
        for (int64_t row = 0; row < rows.count; ++row) {
            const int64_t own = rows.side[row], probed = 1 - own;
            expire(probed, rows.start[row]);
            const int64_t high = rows.high[row];
            int64_t matches = 0;
            uint64_t sum = 0;
            auto entry = sets_[probed].lower_bound(Layout::entry(rows.low[row], 0));
            for (; entry != sets_[probed].end() && Layout::key(*entry) <= high; ++entry) {
                ++matches;
                sum += splitmix64(static_cast<uint64_t>(Layout::position(*entry)));
            }
            count[row] = matches;
            fingerprint[row] = sum;
            insert(own, rows.key[row], rows.position[row]);
        }
    }

private:
    typename Set::allocator_type allocator() { return typename Set::allocator_type(&arena_); }

    void expire(int64_t side, int64_t start) {
        for (; first_[side] < std::min(start, last_[side]); ++first_[side]) {
            const auto& ring = keys_[side];
            const int64_t key = ring[first_[side] & (ring.size() - 1)];
            sets_[side].erase(Layout::entry(key, first_[side]));
        }
    }

    void insert(int64_t side, int64_t key, int64_t position) {
        if (last_[side] - first_[side] == static_cast<int64_t>(keys_[side].size())) grow(side);
        keys_[side][position & (keys_[side].size() - 1)] = key;
        last_[side] = position + 1;
        sets_[side].insert(Layout::entry(key, position));
    }

    void grow(int64_t side) {
        std::vector<int64_t> larger(std::max<size_t>(2 * keys_[side].size(), 64));
        for (int64_t at = first_[side]; at < last_[side]; ++at)
            larger[at & (larger.size() - 1)] = keys_[side][at & (keys_[side].size() - 1)];
        keys_[side].swap(larger);
    }

    Arena arena_;
    Set sets_[2];
    std::vector<int64_t> keys_[2];
    int64_t first_[2] = {0, 0}, last_[2] = {0, 0};
};

using Maker = std::unique_ptr<Join> (*)(bool huge_pages);

template <template <class, class> class SetOf, class Layout>
std::unique_ptr<Join> make(bool huge_pages) {
    using Set = typename SetOf<typename Layout::Entry, Allocator<typename Layout::Entry>>::type;
    return std::make_unique<SetJoin<Set, Layout>>(huge_pages);
}

#ifdef HAS_ABSL
template <class Entry, class Alloc>
struct Absl {
    using type = absl::btree_set<Entry, std::less<Entry>, Alloc>;
};
#endif

#ifdef HAS_TLX
template <class Entry, class Alloc>
struct Tlx {
    using type = tlx::btree_set<Entry, std::less<Entry>, tlx::btree_default_traits<Entry, Entry>, Alloc>;
};

template <class Entry>
struct WideNodes : tlx::btree_default_traits<Entry, Entry> {
    static const int leaf_slots = 64, inner_slots = 64;
};

template <class Entry, class Alloc>
struct TlxWide {
    using type = tlx::btree_set<Entry, std::less<Entry>, WideNodes<Entry>, Alloc>;
};
#endif

const std::map<std::string, Maker>& makers() {
    static const std::map<std::string, Maker> all = {
#ifdef HAS_ABSL
        {"absl::btree_set", make<Absl, Wide>},
        {"absl::btree_set, packed", make<Absl, Packed>},
#endif
#ifdef HAS_TLX
        {"tlx::btree_set", make<Tlx, Wide>},
        {"tlx::btree_set, 64 slots, packed", make<TlxWide, Packed>},
#endif
    };
    return all;
}

}  // namespace

extern "C" {

// The names of what there is, a line each.
const char* peer_names() {
    static const std::string names = [] {
        std::string lines;
        for (const auto& [name, maker] : makers()) lines += name + "\n";
        return lines;
    }();
    return names.c_str();
}

void* peer_make(const char* name, int huge_pages) {
    return makers().at(name)(huge_pages != 0).release();
}

void peer_join(void* join, int64_t rows, const int64_t* side, const int64_t* position,
               const int64_t* key, const int64_t* low, const int64_t* high, const int64_t* start,
               int64_t* count, uint64_t* fingerprint) {
    static_cast<Join*>(join)->run({rows, side, position, key, low, high, start}, count, fingerprint);
}

void peer_free(void* join) { delete static_cast<Join*>(join); }
}
