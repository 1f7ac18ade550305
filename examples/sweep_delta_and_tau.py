"""What do δ and τ of a distributed semijoin cost, and what does too small a δ lose?

δ is the longest accumulated delay that the model allows for, τ the execution interval. Three
streams live at three sites of a wide-area network with 25 ms of latency.
"""

import joinsim as js

DELTAS_MS = (40, 80, 320)
TAUS_MS = (10, 20, 40)


def main() -> None:
    scenario = js.scenario("semijoin-delta", scale="smoke").point(4)
    print("delta   tau    results lost   messages     MB")
    for delta in DELTAS_MS:
        for tau in TAUS_MS:
            run = scenario.run(delta=f"{delta} ms", tau=f"{tau} ms")
            assert isinstance(run, js.Run)
            network = run.summary["network"]
            print(
                f"{delta:>3} ms {tau:>3} ms {run.verdict.missing:>14,} {network['messages']:>10,} "
                f"{network['bytes'] / 1e6:>6.2f}"
            )


if __name__ == "__main__":
    main()
