"""What SciPy and statsmodels say of the samples that reference.rs makes.

    python3 -m venv venv && venv/bin/pip install scipy statsmodels
    venv/bin/python crates/core/src/tail/reference.py

Prints the constants in reference.rs.
"""

import math
import warnings

import scipy
import statsmodels
from scipy.stats import beta, chi2, genpareto, kstest
from statsmodels.stats.diagnostic import acorr_ljungbox
from statsmodels.tsa.stattools import kpss

warnings.simplefilter("ignore")  # p-values outside the table of KPSS: the statistic is wanted.
MASK = (1 << 64) - 1


def uniforms(seed, count):
    """SplitMix64, above 0 and below 1."""
    state = seed
    for _ in range(count):
        state = (state + 0x9E3779B97F4A7C15) & MASK
        z = state
        z = ((z ^ (z >> 30)) * 0xBF58476D1CE4E5B9) & MASK
        z = ((z ^ (z >> 27)) * 0x94D049BB133111EB) & MASK
        z ^= z >> 31
        yield ((z >> 12) + 0.5) / (1 << 52)


def excesses(seed, count, shape, scale):
    """In whole ns, as a program would have them."""
    term = lambda u: -math.log(u) if shape == 0 else math.expm1(-shape * math.log(u)) / shape
    return [math.floor(scale * term(u)) for u in uniforms(seed, count)]


print(f"// SciPy {scipy.__version__}, statsmodels {statsmodels.__version__}")
print("// genpareto.fit(values + 0.5, floc=0): seed, count, true shape, fitted shape and scale")
for seed, count, shape in [(1, 500, 0.2), (2, 500, 0.0), (3, 1000, -0.2), (4, 200, 0.4), (5, 2000, 0.1)]:
    values = [value + 0.5 for value in excesses(seed, count, shape, 20_000)]
    fitted, _, scale = genpareto.fit(values, floc=0)
    print(f"({seed}, {count}, {shape:.1f}, {fitted:.5f}, {scale:.1f}),")

print("// beta.ppf(0.95, k + 1, n - k): k, n, limit")
for k, n in [(0, 100), (0, 1_000_000), (1, 100), (2, 20_001), (50, 1000), (300, 100_000)]:
    print(f"({k}, {n}.0, {beta.ppf(0.95, k + 1, n - k):.6e}),")

print("// chi2.ppf(0.95, 2 * k + 2) / 2, and 0.025 with 2 * k, 0.975 with 2 * k + 2: k, upper, interval")
for k in [0, 1, 2, 12, 200, 201, 5000]:
    low = chi2.ppf(0.025, 2 * k) / 2 if k else 0.0
    print(f"({k}, {chi2.ppf(0.95, 2 * k + 2) / 2:.6f}, ({low:.6f}, {chi2.ppf(0.975, 2 * k + 2) / 2:.6f})),")

print("// kpss(x, 'c', nlags=int(4 * (n / 100) ** 0.25)), acorr_ljungbox(x, [10 or 4]): seed, n, level, p")
for seed, n in [(6, 100), (7, 40), (8, 128)]:
    x = [math.log(-math.log(u)) for u in uniforms(seed, n)]
    level = kpss(x, "c", nlags=int(4 * (n / 100) ** 0.25))[0]
    p = acorr_ljungbox(x, [10 if n >= 50 else 4])["lb_pvalue"].iloc[0]
    print(f"({seed}, {n}, {level:.6f}, {p:.6f}),")

print("// kstest(u ** 0.8, 'uniform').pvalue: seed, n, p")
for seed, n in [(9, 50), (10, 200)]:
    u = [u**0.8 for u in uniforms(seed, n)]
    print(f"({seed}, {n}, {kstest(u, 'uniform').pvalue:.4f}),")
