# SPDX-License-Identifier: BSD-3-Clause
"""Sums of the smoothed hinge over a block of rows, for many problems at once.

With u = s f, s = +1 or -1 the sign of a row in a problem (0: the row is not in it)::

    L_tau(u) = 0,  (u - 1 - tau)^2 / 4 tau,  1 - u      for u >= 1 + tau, between, below
    q = -L_tau'(u), alpha divided by its upper bound

(Wang & Yang 2022, section 2.3; see leaveout.methods._smoothing.) The histogram has bins
of ascending offsets s (1 - u): by sign, power of two from 2^-60 on, and eighths of it.
"""

from libc.string cimport memcpy

# Sign, exponent and three bits of the mantissa of 2^-60.
cdef long FIRST_BIN = (1023 - 60) << 3

# What is summed, in this order: the columns of `sums`.
#   smoothed loss, hinge, complementarity hinge - q (1 - u), rows in the band, rows


cdef inline long bin_of(double offset, long half) noexcept nogil:
    """Bin of an offset, among 2 half."""
    cdef unsigned long long bits
    memcpy(&bits, &offset, 8)
    cdef long place = <long>((bits >> 49) & 0x3FFF) - FIRST_BIN
    place = min(max(place, 0), half - 1)
    return half - 1 - place if bits >> 63 else half + place


def sum_band(
    const double[:, ::1] f,          # in, (problems, rows)
    const int[::1] codes,            # in, (rows,) classes
    const int[::1] positive,         # in, (problems,) class with sign +1
    const int[::1] negative,         # in, (problems,) class with sign -1
    const double[::1] weight,        # in, (rows,)
    const double[::1] tau,           # in, (problems,) >= 0
    double[:, ::1] share,            # out, (problems, rows) weight * s * q
    unsigned char[:, ::1] band,      # out, (problems, rows) 1 if |u - 1| < tau
    double[:, ::1] sums,             # out, (problems, 5)
    double[:, ::1] mass,             # in/out, (problems, n_bins) weight by offset
    long long[:, ::1] counts,        # in/out, (problems, n_bins) rows by offset
):
    """Fill share and band, the sums, and the histogram; weight 0 does not count."""
    cdef Py_ssize_t k, i
    cdef long place, half = mass.shape[1] // 2
    cdef double s, short, q, t, hinge, loss
    cdef double total_loss, total_hinge, total_gap, in_band, rows
    with nogil:
        for k in range(f.shape[0]):
            t = tau[k]
            total_loss = total_hinge = total_gap = in_band = rows = 0.0
            for i in range(f.shape[1]):
                share[k, i] = 0.0
                band[k, i] = 0
                if weight[i] == 0.0:
                    continue
                if codes[i] == positive[k]:
                    s = 1.0
                elif codes[i] == negative[k]:
                    s = -1.0
                else:
                    continue
                short = 1.0 - s * f[k, i]
                hinge = short if short > 0.0 else 0.0
                if short >= t:
                    q, loss = 1.0, short
                elif short <= -t:
                    q, loss = 0.0, 0.0
                else:
                    q = (short + t) / (2.0 * t)
                    loss = q * q * t
                    band[k, i] = 1
                    in_band += 1.0
                rows += 1.0
                share[k, i] = weight[i] * s * q
                total_loss += weight[i] * loss
                total_hinge += weight[i] * hinge
                total_gap += weight[i] * (hinge - q * short)
                place = bin_of(s * short, half)
                mass[k, place] += weight[i]
                counts[k, place] += 1
            sums[k, 0] = total_loss
            sums[k, 1] = total_hinge
            sums[k, 2] = total_gap
            sums[k, 3] = in_band
            sums[k, 4] = rows
