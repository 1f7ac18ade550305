// The keyed interval join W1 in WindFlow: two sources, the join by keys, a sink that adds up pairs.
//
// Usage: interval_join ROWS REPLICAS BATCH WITHIN_US. Prints seconds, pairs and their checksum.
// Sources make the tuples of benchmarks/interval_work.py as they go; results go to the sink.

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <optional>
#include <random>
#include <string>

#include <windflow.hpp>

namespace {

constexpr uint64_t keys = 50, step_us = 1000, shift_us = 501;

uint64_t splitmix64(uint64_t z) {
    z += 0x9E3779B97F4A7C15;
    z = (z ^ z >> 30) * 0xBF58476D1CE4E5B9;
    z = (z ^ z >> 27) * 0x94D049BB133111EB;
    return z ^ z >> 31;
}

struct Arrival {
    uint64_t key;
    uint64_t id;
};

struct Source {
    uint64_t stream, rows;

    void operator()(wf::Source_Shipper<Arrival>& shipper) {
        for (uint64_t id = 0; id < rows; ++id) {
            const uint64_t ts = id * step_us + (stream == 2 ? shift_us : 0);
            shipper.pushWithTimestamp(Arrival{splitmix64(stream << 48 ^ id) % keys, id}, ts);
            shipper.setNextWatermark(ts);
        }
    }
};

struct Pair {
    uint64_t base, probe;
};

struct Join {
    std::optional<Pair> operator()(const Arrival& base, const Arrival& probe) {
        return Pair{base.id, probe.id};
    }
};

std::atomic<uint64_t> pairs{0}, checksum{0};

struct Sink {
    uint64_t received = 0, sum = 0;

    void operator()(std::optional<Pair>& pair) {
        if (pair) {
            ++received;
            sum += splitmix64(pair->base << 32 ^ pair->probe);
        } else {
            pairs += received;
            checksum += sum;
        }
    }
};

}  // namespace

int main(int argc, char** argv) {
    if (argc != 5) return 2;
    const uint64_t rows = std::strtoull(argv[1], nullptr, 10);
    const size_t replicas = std::strtoull(argv[2], nullptr, 10);
    const size_t batch = std::strtoull(argv[3], nullptr, 10);
    const auto within = std::chrono::microseconds(std::strtoll(argv[4], nullptr, 10));
    wf::PipeGraph graph("w1", wf::Execution_Mode_t::DEFAULT, wf::Time_Policy_t::EVENT_TIME);
    Source make_bases{1, rows}, make_probes{2, rows};
    auto bases = wf::Source_Builder(make_bases).withOutputBatchSize(batch).build();
    auto probes = wf::Source_Builder(make_probes).withOutputBatchSize(batch).build();
    auto& left = graph.add_source(bases);
    auto& right = graph.add_source(probes);
    auto& both = left.merge(right);
    Join pair_up;
    auto join = wf::Interval_Join_Builder(pair_up)
                    .withParallelism(replicas)
                    .withOutputBatchSize(batch)
                    .withKeyBy([](const Arrival& arrival) -> uint64_t { return arrival.key; })
                    .withBoundaries(-within, within)
                    .withKPMode()
                    .build();
    both.add(join);
    Sink add_up;
    auto sink = wf::Sink_Builder(add_up).build();
    both.add_sink(sink);
    const auto begin = std::chrono::steady_clock::now();
    graph.run();
    const std::chrono::duration<double> took = std::chrono::steady_clock::now() - begin;
    std::printf("%.6f %llu %llu\n", took.count(), static_cast<unsigned long long>(pairs.load()),
                static_cast<unsigned long long>(checksum.load()));
}
