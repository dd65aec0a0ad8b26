# SPDX-License-Identifier: BSD-3-Clause
"""The tableau of a full solution on some of the samples, its slots.

The first slots are the free samples, M. With P = (K_MM + c 11')^-1, L its Cholesky factor
(K_MM + c 11' = L L'), Y = (K_.M + c) L^-T and d = (1 - (K_.M + c) P 1) / root,

    A = P - P 1 1'P / root^2        Bm = (K_.M + c) P + d 1'P / root
    S = K + c - Y Y' + d d'         root^2 = 1'P 1;  c = d = 0 without an intercept

A slot costs about 2 |M|^2 + k |M| flops, for k slots.

**Far samples.** f of a sample without a slot is known to stay in its range without a
product with K if the walk moves w little. For some members M' of M and coefficients B_i of
sum 1, phi_i = sum_j B_ij phi_j + res_i, whatever B is; hence for every move of w and b

    |Delta f_i| <= |Delta w| |res_i| + max_j |B_ij| sum_j |Delta f_j|

where only members that left their kink have Delta f_j != 0. B_i of the tableau of M' makes
|res_i| small: S_ii = |res_i|^2.
"""

import numpy as np

from libc.math cimport INFINITY, fabs, sqrt
from libc.string cimport memcpy
from scipy.linalg.cython_blas cimport ddot, dgemm, dtrmm
from scipy.linalg.cython_lapack cimport dlauum, dpotrf, dtrtri

from leaveout.engine._stairs cimport (
    FAR, Stairs, kink_of, level_of, make_stairs, range_of, state_of,
)

# A quantity may exceed its range by this much, relative to the unit margin and to C.
cdef double SLACK = 1e-12
# Samples per call of project and fill, which may run in threads: enough for BLAS-3, few
# enough to compute only half of S.
SLOTS_AT_ONCE = 96
# At most this many free samples bound the moves of far samples: more cost more to compute
# than they save. Their pivots may not be smaller than this, relative to the largest K_ii.
cdef Py_ssize_t LARGEST_BASIS = 256
cdef double SMALLEST_PIVOT = 1e-6


cdef int start_state(
    const Stairs* stairs, Py_ssize_t i, double beta, double f, bint free,
) noexcept nogil:
    """State of sample i: the parity by whether it is free, the rest by beta and f."""
    cdef int state = state_of(stairs, i, beta), j = state // 2
    if free and state % 2 == 0:
        # Free with beta on a level: the kink that is nearer to f.
        if j == stairs.n_kinks:
            return state - 1
        if j == 0 or fabs(f - kink_of(stairs, i, j)) < fabs(f - kink_of(stairs, i, j - 1)):
            return state + 1
        return state - 1
    if not free and state % 2 == 1:
        return state - 1 if level_of(stairs, i, j) - beta < beta - level_of(
            stairs, i, j + 1) else state + 1
    return state


cdef double add_ones(
    Py_ssize_t m, double* B, double total, const double* ones, double root, bint intercept,
) noexcept nogil:
    """B := (K_.M + c) P + d P 1 / root, given the first term; return d."""
    cdef Py_ssize_t j
    cdef double d = total
    if not intercept:
        return 0.0
    for j in range(m):
        d -= B[j]
    d /= root
    for j in range(m):
        B[j] += d * ones[j]
    return d


# Memory of earlier tableaux: the first touch of a page costs more than the arithmetic on
# it. At most POOL_SIZE doubles are kept; arrays below LEAST_POOLED are cheap to allocate.
cdef list pool = []
cdef Py_ssize_t POOL_SIZE = 2**24, LEAST_POOLED = 2**13


cdef borrow(list loans, tuple shape):
    """An array of doubles from the pool; loans remembers it for give_back."""
    cdef Py_ssize_t rows = shape[0], columns = shape[1], size = rows * columns, k
    if size < LEAST_POOLED:
        return np.empty(shape)
    for k in range(len(pool) - 1, -1, -1):  # the last returned is still in the cache
        if size <= pool[k].size <= 2 * size + 1024:
            array = pool.pop(k)
            break
    else:
        array = np.empty(size)
    loans.append(array)
    return array[:size].reshape(shape)


cdef borrow_floats(list loans, tuple shape):
    """An array in single precision from the pool."""
    cdef Py_ssize_t size = shape[0] * shape[1]
    return borrow(loans, (1, (size + 1) // 2))[0].view(np.float32)[:size].reshape(shape)


cdef give_back(list loans):
    """Return arrays to the pool."""
    if not loans:
        return
    kept = sum([array.size for array in pool])
    for array in loans:
        kept += array.size
        if kept <= POOL_SIZE and len(pool) < 64:
            pool.append(array)


cdef enlarged(old, tuple shape, type=float):
    """A copy of an array with more rows and columns."""
    new = np.empty(shape, type)
    if old is None or not old.shape[0]:
        return new
    where = tuple(slice(min(a, b)) for a, b in zip(new.shape, old.shape, strict=True))
    new[where] = np.asarray(old)[where]
    return new


NO_ROWS, NO_VALUES = np.empty(0, np.intp), np.zeros(1)
NO_FLOATS = np.empty((0, 0), np.float32)


cdef class Tableau:
    """The tableau on its slots: free samples first, others by add, project and fill."""

    def __del__(self):
        """Keep the memory for the next tableau."""
        if self.loans is not None:
            give_back(self.loans + self.loans_of_M)

    def __init__(self, K, y, offsets, levels, beta, f, free, signs, bint intercept):
        """Factor the kernel on the free samples; raise LinAlgError if it is singular."""
        cdef Py_ssize_t n = y.shape[0], i
        self.K, self.levels, self.y, self.offsets = K, levels, y, offsets
        self.signs, self.intercept = signs, intercept
        self.stairs = make_stairs(
            n, offsets.shape[0], &self.y[0], &self.offsets[0], &self.levels[0, 0])
        self.scale = self.top = 0.0
        for i in range(n):
            self.scale += self.K[i, i] / n
            self.top = max(self.top, self.K[i, i])
        self.scale = self.scale or 1.0
        self.c = self.scale if intercept else 0.0
        self.capacity = 0
        self.loans, self.loans_of_M = [], []
        self.slot = np.empty(n, dtype=np.intp)
        self.T = self.Y = self.start = self.d = self.row = self.state = None
        if not self.restart(beta, f, np.flatnonzero(free)):
            raise np.linalg.LinAlgError("the bordered kernel on the margin is singular")

    cpdef bint restart(
        self, const double[::1] beta, const double[::1] f, const Py_ssize_t[::1] members,
    ):
        """Go to another solution, whose C are in levels; return whether M is regular.

        Only the free samples, the members of M, have slots then.
        """
        cdef Py_ssize_t n = self.y.shape[0], m = members.shape[0], i
        cdef double size = 0.0
        self.beta, self.f = beta, f
        for i in range(n):
            size += fabs(beta[i])
            self.slot[i] = -1
        self.unit = 4.0 * size
        # A few SLACK plus rounding. It cannot be larger: if points are nearly dependent, an
        # error of f at these moves f elsewhere a million times as far.
        self.tol = 4.0 * SLACK + 2e-15 * self.scale * size
        self.n_free = self.n_slots = self.n_old = self.n_basis = 0
        self.reached_bounds = False
        self.ones, self.root = NO_VALUES, 1.0
        self.far, self.reach = NO_ROWS, NO_VALUES
        self.far_K = self.far_room = NO_FLOATS
        give_back(self.loans_of_M)
        self.loans_of_M = []
        self.inverse = borrow(self.loans_of_M, (max(m, 1), max(m, 1)))
        self._reserve(m)
        self._add(members, True)
        return m == 0 or self._factor()

    @property
    def rows(self):
        """The sample of each slot."""
        return np.asarray(self.row)[: self.n_slots]

    def _reserve(self, Py_ssize_t slots):
        """Make room for a number of slots, and for more to come; keep what is there."""
        cdef Py_ssize_t n = self.y.shape[0], size, ld, k
        cdef double[:, ::1] T
        if slots <= self.capacity and self.capacity > 0:
            return
        self.capacity = size = n if slots == n else min(n, slots + max(256, slots // 2))
        ld = (size // BLOCK + 1) * BLOCK
        ld += BLOCK * (ld % 64 == 0)  # rows 64 doubles apart share cache sets
        T, k = self.T, self.n_slots
        self.T = borrow(self.loans, (size, ld))
        if k:
            np.asarray(self.T)[:k, :k] = np.asarray(T)[:k, :k]
            self.Y = enlarged(self.Y, (size - self.n_free, self.n_free))
        self.start, self.d = enlarged(self.start, (8, ld)), enlarged(self.d, (size,))
        self.row, self.state = enlarged(self.row, (size,), np.intp), enlarged(
            self.state, (size,), np.intc)
        if self.far.shape[0]:
            self.far_K = enlarged(self.far_K, (size, self.far.shape[0]), np.float32)

    def _add(self, const Py_ssize_t[::1] rows, bint free):
        """Give samples slots, and write their start values."""
        cdef Py_ssize_t a, s, i, ld = self.start.shape[1]
        for a in range(rows.shape[0]):
            i, s = rows[a], self.n_slots + a
            self.row[s] = i
            self.slot[i] = s
            self.state[s] = start_state(&self.stairs, i, self.beta[i], self.f[i], free)
            self.start[0, s] = self.beta[i] if free else self.f[i]
            range_of(&self.stairs, i, self.state[s], &self.start[1, s], &self.start[2, s])
            self.start[3, s] = 1.0 if free else 0.0
            self.start[4, s] = self.beta[i]
            self.start[5, s] = self.f[i]
            self.start[6, s] = self.signs[i]
        self.n_slots += rows.shape[0]
        if free:
            self.n_free = self.n_slots
            self.Y = borrow(self.loans_of_M, (self.capacity - self.n_free, self.n_free))
        for s in range(self.n_slots, ld):
            self.start[1, s] = -FAR
            self.start[2, s] = FAR
            self.start[0, s] = self.start[3, s] = self.start[6, s] = 0.0

    cdef bint _factor(self):
        """Write A, L^-1 and P 1; return whether the matrix is positive definite."""
        cdef Py_ssize_t m = self.n_free, a, b
        cdef int order = <int>m, info = 0, ld = <int>self.T.shape[1]
        cdef const double* row
        with nogil:
            for a in range(m):
                row = &self.K[self.row[a], 0]
                for b in range(a + 1):
                    self.inverse[a, b] = row[self.row[b]] + self.c
            # A row-major lower triangle is an upper one in Fortran: L, then L^-1.
            dpotrf(b"U", &order, &self.inverse[0, 0], &order, &info)
            if info == 0:
                dtrtri(b"U", b"N", &order, &self.inverse[0, 0], &order, &info)
        if info != 0:
            return False
        if self.intercept:
            self.ones, self.root = self._sum_of_inverse(m)
        with nogil:
            for a in range(m):
                memcpy(&self.T[a, 0], &self.inverse[a, 0], (a + 1) * sizeof(double))
            dlauum(b"U", &order, &self.T[0, 0], &ld, &info)
            if self.intercept:
                for a in range(m):
                    for b in range(a + 1):
                        self.T[a, b] -= self.ones[a] * self.ones[b]
            for a in range(m):
                for b in range(a):
                    self.T[b, a] = self.T[a, b]
        return True

    def _sum_of_inverse(self, Py_ssize_t m):
        """P 1 / root and root for the first m free samples."""
        cdef Py_ssize_t a, b
        cdef double half, square = 0.0, root
        cdef double[::1] ones = np.zeros(m)
        with nogil:
            for a in range(m):
                half = 0.0
                for b in range(a + 1):
                    half += self.inverse[a, b]
                square += half * half
                for b in range(a + 1):
                    ones[b] += half * self.inverse[a, b]
            root = sqrt(square)
            for a in range(m):
                ones[a] /= root
        return ones, root

    cpdef add(self, rows):
        """Give samples slots; project and fill then compute their part of the tableau."""
        self.n_old = self.n_slots
        self._reserve(self.n_slots + len(rows))
        self._add(np.ascontiguousarray(rows, dtype=np.intp), False)

    cpdef project(self, part):
        """Write Y, d and Bm of a part of the samples that were added last."""
        cdef Py_ssize_t m = self.n_free, first = self.n_old + part.start, a, j
        cdef Py_ssize_t stop = self.n_old + part.stop
        if m == 0:
            return
        cdef list loans = []
        cdef double[:, ::1] B = borrow(loans, (stop - first, m))
        with nogil:
            self._project(
                &self.row[first], stop - first, m, &self.ones[0], self.root,
                &self.Y[first - m, 0], &B[0, 0], &self.d[first])
            for a in range(first, stop):
                for j in range(m):
                    self.T[a, j] = -B[a - first, j]
            for j in range(m):
                for a in range(first, stop):
                    self.T[j, a] = B[a - first, j]
        give_back(loans)

    cdef void _project(
        self, const Py_ssize_t* rows, Py_ssize_t count, Py_ssize_t m, const double* ones,
        double root, double* Y, double* B, double* d,
    ) noexcept nogil:
        """Y, Bm (both (count, m)) and d of some samples, from the first m free ones."""
        cdef Py_ssize_t a, j
        cdef const double* row
        for a in range(count):
            row = &self.K[rows[a], 0]
            for j in range(m):
                Y[a * m + j] = row[self.row[j]] + self.c
        self.to_rows_of_B(count, m, Y, B)
        for a in range(count):
            d[a] = add_ones(m, B + a * m, 1.0, ones, root, self.intercept)

    cdef void to_rows_of_B(
        self, Py_ssize_t count, Py_ssize_t m, double* Y, double* B,
    ) noexcept nogil:
        """Y := Y L^-T and B = Y L^-1, from rows of K_.M + c; L of the first m."""
        cdef int order = <int>m, width = <int>count, ld = <int>self.inverse.shape[0]
        cdef double one = 1.0
        dtrmm(b"L", b"U", b"T", b"N", &order, &width, &one, &self.inverse[0, 0], &ld,
              Y, &order)
        memcpy(B, Y, count * m * sizeof(double))
        dtrmm(b"L", b"U", b"N", b"N", &order, &width, &one, &self.inverse[0, 0], &ld,
              B, &order)

    cpdef fill(self, part):
        """Write S, its mirror image and K probe of a part of the samples added last."""
        cdef Py_ssize_t m = self.n_free, first = self.n_old + part.start, a, b
        cdef Py_ssize_t stop = self.n_old + part.stop
        cdef int order = <int>m, count = <int>(stop - first), others = <int>(stop - m)
        cdef int ld = <int>self.T.shape[1]
        cdef double one = 1.0, minus = -1.0, d
        cdef const double* row
        if m == 0 and self.intercept:
            return  # walks start from tableaux of their own
        with nogil:
            for a in range(first, stop):
                row = &self.K[self.row[a], 0]
                d = self.d[a] if m > 0 else 0.0
                for b in range(m, stop):
                    self.T[a, b] = row[self.row[b]] + self.c
                if self.intercept:
                    for b in range(m, stop):
                        self.T[a, b] += d * self.d[b]
            if m > 0:
                # T[first:stop, m:stop] -= Y[first:stop] @ Y[m:stop].T
                dgemm(b"T", b"N", &others, &count, &order, &minus, &self.Y[0, 0], &order,
                      &self.Y[first - m, 0], &order, &one, &self.T[first, m], &ld)
            for b in range(m, first):
                for a in range(first, stop):
                    self.T[b, a] = self.T[a, b]

    cpdef finish(self):
        """Complete what depends on all slots: padding, probe, rows of far samples."""
        cdef Py_ssize_t k = self.n_slots, width = (k + BLOCK - 1) // BLOCK * BLOCK, a, b
        cdef int n = <int>self.y.shape[0], inc = 1
        cdef double[::1] probe = np.zeros(n)
        with nogil:
            self.probe_sum = self.probe_f = 0.0
            for a in range(k):
                for b in range(k, width):
                    self.T[a, b] = 0.0
                probe[self.row[a]] = self.start[6, a]
                self.probe_sum += self.start[6, a]
                self.probe_f += self.start[6, a] * self.start[5, a]
            for a in range(k):
                # K_probe = K[rows] @ probe
                self.start[7, a] = ddot(&n, <double*>&self.K[self.row[a], 0], &inc,
                                        &probe[0], &inc)
        if self.far.shape[0]:
            self._store_rows(self.n_old)

    def first_moves(self, pilots):
        """Moves of f of all samples if the first segments of some walks were complete."""
        cdef Py_ssize_t m = self.n_free
        K, members, slots = np.asarray(self.K), self.rows, np.asarray(self.slot)[pilots]
        beta = np.asarray(self.beta)[pilots]
        moves = -beta[:, None] * K[pilots]
        if m == 0:
            return moves - moves.mean(axis=1, keepdims=True) * self.intercept
        A, inside = np.asarray(self.T)[:m, :m], slots >= 0
        B = K[np.ix_(pilots, members)] @ A + np.asarray(self.ones) / self.root
        B *= beta[:, None]
        own = slots[inside]
        A_own = np.maximum(A[own, own], 1e-300)  # 0 if it is the only free sample
        B[inside] = -(beta[inside] / A_own)[:, None] * A[own]
        moves[inside] = 0.0
        B = B.astype(np.float32)
        for first in range(0, K.shape[1], 512):
            part = slice(first, first + 512)
            moves[:, part] += B @ K[members, part].astype(np.float32)
        if self.intercept:  # f of the free samples does not move
            anchor = np.where(pilots == members[0], members[m - 1], members[0])
            moves -= moves[np.arange(anchor.size), anchor][:, None]
        return moves

    def sort_far(self, Py_ssize_t n_walks):
        """Put the samples without a slot in order: first those that are easily moved.

        f of a sample stays in its range if |Delta w| and sum_j |Delta f_j| / OF_MEMBERS are
        below its reach, see above. Without members (n_basis = 0; few walks do not repay the
        products), if |Delta w| max |phi| + |Delta b| is.
        """
        cdef Py_ssize_t m
        far = np.flatnonzero(np.asarray(self.slot) < 0)
        low, high = room = self._room_of(far)
        distance = np.minimum(-low, high) * (1.0 - 1e-6) - 1e-5  # far_room is rounded
        m = self._largest_basis()
        self.n_basis = m if 4 * m * m < n_walks * self.n_free else 0
        reach = distance / self._mobility(far, m) if self.n_basis else distance
        order = np.argsort(reach, kind="stable")
        self.far, self.reach = far[order], reach[order]
        self.far_room = np.ascontiguousarray(room[:, order], np.float32)
        self.far_K = borrow_floats(self.loans, (self.capacity, far.size))
        self._store_rows(0)

    def _largest_basis(self):
        """How many of the first free samples are far enough from dependent."""
        pivots = np.asarray(self.inverse).diagonal()[: self.n_free] ** -2.0
        small = np.flatnonzero(pivots < SMALLEST_PIVOT * self.top)
        return min(LARGEST_BASIS, self.n_free if small.size == 0 else int(small[0]))

    def _mobility(self, const Py_ssize_t[::1] far, Py_ssize_t m):
        """|res_i| + OF_MEMBERS max_j |B_ij| of far samples, from m free ones."""
        cdef Py_ssize_t first, a, j, count, n_far = far.shape[0]
        cdef double size, largest, d
        cdef double[:, ::1] Y = np.empty((SLOTS_AT_ONCE, m)), B = np.empty((SLOTS_AT_ONCE, m))
        cdef double[::1] shift = np.empty(SLOTS_AT_ONCE), ones
        cdef double root = 1.0
        cdef double[::1] out = np.empty(n_far)
        ones = np.zeros(m)
        if self.intercept:
            ones, root = self._sum_of_inverse(m)
        for first in range(0, n_far, SLOTS_AT_ONCE):
            count = min(<Py_ssize_t>SLOTS_AT_ONCE, n_far - first)
            with nogil:
                self._project(&far[first], count, m, &ones[0], root, &Y[0, 0], &B[0, 0],
                              &shift[0])
                for a in range(count):
                    d = shift[a]
                    size = self.K[far[first + a], far[first + a]] + self.c + d * d
                    largest = 0.0
                    for j in range(m):
                        size -= Y[a, j] * Y[a, j]
                        largest = max(largest, fabs(B[a, j]))
                    # Rounding errors of size are below 1e-6 top.
                    out[first + a] = (sqrt(max(size, 0.0) + 1e-6 * self.top)
                                      + OF_MEMBERS() * largest)
        return np.asarray(out)

    def _room_of(self, const Py_ssize_t[::1] far):
        """How far f of some samples may move, down and up."""
        cdef Py_ssize_t a, i
        cdef double low, high
        cdef double[:, ::1] room = np.empty((2, far.shape[0]))
        for a in range(far.shape[0]):
            i = far[a]
            range_of(&self.stairs, i, start_state(
                &self.stairs, i, self.beta[i], self.f[i], False), &low, &high)
            room[0, a] = low - self.f[i] if low > -FAR else -INFINITY
            room[1, a] = high - self.f[i] if high < FAR else INFINITY
        return np.asarray(room)

    def _store_rows(self, Py_ssize_t first):
        """Convert the kernel values of slots with the far samples to single precision."""
        cdef Py_ssize_t s, a
        cdef const double* row
        with nogil:
            for s in range(first, self.n_slots):
                row = &self.K[self.row[s], 0]
                for a in range(self.far.shape[0]):
                    self.far_K[s, a] = <float>row[self.far[a]]
            for a in range(self.far.shape[0]):
                if self.slot[self.far[a]] >= 0:
                    # It has a slot by now, and walks keep it in its range.
                    self.far_room[0, a], self.far_room[1, a] = -INFINITY, INFINITY
