"""The methods that numpy's, torch's and einops' users know besides, against numpy."""

from __future__ import annotations

import array
import itertools
import math
from typing import Any

import numpy as np
import pytest
from tensor_checks import Checks

from uopc import Tensor, UopcError

pytestmark = pytest.mark.usefixtures("cache_folder")

RNG = np.random.default_rng(17)


def reals(*shape: int) -> np.ndarray:
    return RNG.standard_normal(shape).astype(np.float32)


def test_elements():
    checks = Checks(rtol=1e-4)
    x, y = reals(3, 4), reals(4)
    t, u = Tensor(x), Tensor(y)
    odd = np.array([np.nan, np.inf, -np.inf, 0.0, -0.0, 2.5], np.float32)
    o = Tensor(odd)
    inside = 1 / (1 + np.exp(-x))
    for name, got, expected in (
        ("erfc", t.erfc(), [[math.erfc(v) for v in row] for row in x]),
        ("logit", Tensor(inside).logit(), np.log(inside / (1 - inside))),
        ("sinc", Tensor(odd[3:]).sinc(), np.sinc(odd[3:])),
        ("xlogy", Tensor([0.0, 2.0]).xlogy(Tensor([0.0, 3.0])), [0, 2 * math.log(3)]),
        ("heaviside", o.heaviside(0.5), np.heaviside(odd, 0.5)),
        ("nan_to_num", o.nan_to_num(1.0, 5.0, -5.0), np.nan_to_num(odd, True, 1.0, 5.0, -5.0)),
        ("nan_to_num limits", o.nan_to_num(), np.nan_to_num(odd)),
        ("signbit", o[1:].signbit(), np.signbit(odd[1:])),
        ("signbit int", Tensor([-1, 2]).signbit(), [True, False]),
        ("isposinf", o.isposinf(), np.isposinf(odd)),
        ("isneginf", o.isneginf(), np.isneginf(odd)),
        ("fmax", o.fmax(1.0), np.fmax(odd, 1)),
        ("fmin", o.fmin(Tensor(odd[::-1])), np.fmin(odd, odd[::-1])),
        ("deg2rad", t.deg2rad().rad2deg(), x),
        ("ldexp", t.ldexp(Tensor([1, 2, 3, 0])), np.ldexp(x, [1, 2, 3, 0])),
        ("isin", Tensor([1, 5, 2]).isin(Tensor([2, 1])), [True, False, True]),
        ("div floor", t.div(u, rounding_mode="floor"), np.floor(x / y)),
        ("div trunc", t.div(u, rounding_mode="trunc"), np.trunc(x / y)),
        ("round 2", t.round(2), np.round(x, 2)),
        ("rshift", 8 >> Tensor([1, 2]), [4, 2]),
        ("lshift", 1 << Tensor([1, 2]), [2, 4]),
        ("divmod", divmod(t, u)[1], np.mod(x, y)),
        ("pos", +t, x),
        ("clamp_min", t.clamp_min(0).clamp_max(1), np.clip(x, 0, 1)),
        ("float_power", Tensor([2]).float_power(0.5), [math.sqrt(2)]),
    ):
        checks.add(name, got, expected)
    checks.run()
    assert t.allclose(x) and not t.allclose(x + 1) and t.equal(x) and not t.equal(y)
    assert 2.5 in o and 9.0 not in o and f"{Tensor(2.5):.2f}" == "2.50"


def test_operators_that_assign_change_the_tensor_itself():
    x = Tensor([5, 6])
    same = x
    x //= 2
    x %= 5
    x **= 2
    x <<= 2
    x >>= 1
    x |= 1
    x ^= 2
    x &= 0x7F
    expected = np.array([5, 6]) // 2 % 5
    expected = ((((expected**2) << 2) >> 1 | 1) ^ 2) & 0x7F
    x @= Tensor([[1, 0], [0, 2]])
    assert same is x and x.tolist() == (expected * [1, 2]).tolist()
    with pytest.raises(UopcError, match="does not expand"):
        x += Tensor([[1, 2], [3, 4]])


def test_statistics():
    checks = Checks(rtol=1e-4)
    x = reals(4, 5)
    holes = np.where(x > 0.5, np.nan, x)
    t, h = Tensor(x), Tensor(holes)
    w = np.abs(reals(5))
    for name, got, expected in (
        ("std_mean", t.std_mean(1)[0], x.std(1)),
        ("var_mean", t.var_mean(0, correction=1)[0], x.var(0, ddof=1)),
        ("aminmax", t.aminmax(0)[1], x.max(0)),
        ("ptp", t.ptp(1), np.ptp(x, 1)),
        ("nansum", h.nansum(1), np.nansum(holes, 1)),
        ("nanmean", h.nanmean(0, keepdim=True), np.nanmean(holes, 0, keepdims=True)),
        ("average", t.average(1, Tensor(w)), np.average(x, 1, w)),
        ("median", t.median(1), np.median(x, 1)),
        ("median even", t.median(0, keepdim=True), np.median(x, 0, keepdims=True)),
        ("median flat", t.median(), np.median(x)),
        ("quantile", t.quantile(0.3, 1), np.quantile(x, 0.3, 1)),
        ("cov", t.cov(), np.cov(x)),
        ("corrcoef", t.corrcoef(), np.corrcoef(x)),
        ("cosine", t.cosine_similarity(Tensor(x[::-1].copy())),
         (x * x[::-1]).sum(1) / np.linalg.norm(x, axis=1) / np.linalg.norm(x[::-1], axis=1)),
        ("dist", t.dist(1.0), np.linalg.norm(x - 1)),
        ("diff", t.diff(2, 1), np.diff(x, 2, 1)),
        ("kthvalue", t.kthvalue(2, 1)[0], np.sort(x, 1)[:, 1]),
    ):  # fmt: skip
        checks.add(name, got, expected)
    checks.run()


def test_arranging():
    checks = Checks()
    x = reals(4, 6)
    t = Tensor(x)
    y = reals(2, 3, 4)
    v, matrix = np.arange(3.0, dtype=np.float32), reals(2, 2)
    for name, got, expected in (
        ("narrow", t.narrow(1, -3, 2), x[:, 3:5]),
        ("select", t.select(1, -1), x[:, -1]),
        ("pad_to", t.pad_to(None, 8), np.pad(x, ((0, 0), (0, 2)))),
        ("shrink_to", t.shrink_to(2, None), x[:2]),
        *((f"rot90 {k}", t.rot90(k), np.rot90(x, k)) for k in (-1, 0, 1, 2)),
        ("fliplr", t.fliplr().flipud(), x[::-1, ::-1]),
        ("vstack", Tensor.vstack([Tensor(v), Tensor(v)]), np.vstack([v, v])),
        ("hstack", Tensor.hstack([t, t]), np.hstack([x, x])),
        ("hstack 1", Tensor.hstack([Tensor(v), Tensor(v)]), np.hstack([v, v])),
        ("dstack", Tensor.dstack([t, t]), np.dstack([x, x])),
        ("column_stack", Tensor.column_stack([Tensor(v), Tensor(v)]), np.column_stack([v, v])),
        ("unfold", t.unfold(1, 3, 2), np.lib.stride_tricks.sliding_window_view(x, 3, 1)[:, ::2]),
        ("block_diag", Tensor.block_diag(Tensor(matrix), Tensor(v)),
         np.block([[matrix, np.zeros((2, 3))], [np.zeros((1, 2)), v[None]]])),
        ("rearrange", Tensor(y).rearrange("b (h w) c -> (b c) w h", h=3),
         y.reshape(2, 3, 1, 4).transpose(0, 3, 2, 1).reshape(8, 1, 3)),
        ("rearrange dots", Tensor(y).rearrange("... c -> c 1 ..."),
         y.transpose(2, 0, 1)[:, None]),
        ("tril_indices", Tensor.tril_indices(3, 4, 1), np.stack(np.tril_indices(3, 1, 4))),
        ("triu_indices", Tensor.triu_indices(3, 4), np.stack(np.triu_indices(3, 0, 4))),
    ):  # fmt: skip
        checks.add(name, got, expected)
    pieces = zip(t.tensor_split(4, 1), np.array_split(x, 4, 1), strict=True)
    cut = zip(t.tensor_split([1, 3]), np.split(x, [1, 3]), strict=True)
    for got, expected in itertools.chain(pieces, cut):
        checks.add("tensor_split", got, expected)
    checks.run()
    for formula in ("a b", "a b -> a", "(a b -> a b", "(a b) c -> a b c", "a -> a"):
        with pytest.raises(UopcError, match="rearrange"):
            t.rearrange(formula)


def test_places():
    checks = Checks()
    x = reals(4, 3)
    t = Tensor(x)
    mask = x > 0
    index, rows = np.array([[2, 0, 1], [1, 1, 0]]), reals(2, 3)
    added, filled, copied = x.copy(), x.copy(), x.copy()
    np.add.at(added, [0, 0], rows * 2)
    filled[:, [0, -1]] = 7.0
    copied[[2, 1]] = rows
    put = x.copy()
    np.add.at(put, ([0, 0, 3], [1, 1, 2]), [1.0, 2.0, 3.0])
    for name, got, expected in (
        ("x[mask]", t[Tensor(mask)], x[mask]),
        ("x[mask row]", t[mask[:, 0]], x[mask[:, 0]]),
        ("masked_select", t.masked_select(Tensor(mask)), x[mask]),
        ("nonzero", Tensor(mask).nonzero(), np.argwhere(mask)),
        ("take_along_dim", t.take_along_dim(Tensor(index), 0), np.take_along_axis(x, index, 0)),
        ("index_add", t.index_add(0, [0, 0], Tensor(rows), 2), added),
        ("index_fill", t.index_fill(1, [0, -1], 7.0), filled),
        ("index_copy", t.index_copy(0, [2, 1], Tensor(rows)), copied),
        ("index_put", t.index_put(([0, 0, 3], [1, 1, 2]), Tensor([1.0, 2.0, 3.0]), True), put),
    ):
        checks.add(name, got, expected)
    base = np.arange(4, dtype=np.float32) + 1
    source, at = np.array([5.0, -6.0, 7.0], np.float32), np.array([0, 2, 0])
    for reduce, combine in (
        ("sum", np.add), ("prod", np.multiply), ("amax", np.maximum), ("amin", np.minimum),
    ):  # fmt: skip
        expected = base.copy()
        combine.at(expected, at, source)
        checks.add(reduce, Tensor(base).scatter_reduce(0, at, source, reduce), expected)
        start = {"sum": 0.0, "prod": 1.0, "amax": -np.inf, "amin": np.inf}[reduce]
        alone = np.where(np.isin(np.arange(4), at), start, base)
        combine.at(alone, at, source)
        got = Tensor(base).scatter_reduce(0, at, source, reduce, include_self=False)
        checks.add(f"{reduce} alone", got, alone)
    mean = Tensor(base).scatter_reduce(0, at, source, "mean")
    checks.add("mean", mean, [13 / 3, 2, -1.5, 4])
    for fill, number in ((3.0, 3.0), (Tensor([4.0]), 4.0)):
        written = Tensor(x)
        written[Tensor(mask)] = fill
        checks.add("x[mask] = 1", written, np.where(mask, np.float32(number), x))
    written, wanted = Tensor(x), x.copy()
    written[mask] = Tensor(np.resize(base, mask.sum()))
    wanted[mask] = np.resize(base, mask.sum())
    checks.add("x[mask] = many", written, wanted)
    checks.run()


def test_products_of_all_kinds():
    checks = Checks(rtol=1e-4)
    a, b, m = reals(2, 3, 4), reals(4, 3, 5), reals(4, 4)
    p, q = reals(5, 3), reals(5, 3)
    for name, got, expected in (
        ("vdot", Tensor(p).vdot(Tensor(q)), np.vdot(p, q)),
        ("tensordot", Tensor(a).tensordot(Tensor(b), 1), np.tensordot(a, b, 1)),
        ("tensordot axes", Tensor(a).tensordot(Tensor(b), ([1, 2], [1, 0])),
         np.tensordot(a, b, ([1, 2], [1, 0]))),
        ("kron", Tensor(p).kron(Tensor(m)), np.kron(p, m)),
        ("cross", Tensor(p).cross(Tensor(q)), np.cross(p, q)),
        ("trace", Tensor(m).trace(), np.trace(m)),
        ("addmm", Tensor(m).addmm(Tensor(m), Tensor(m), 2, 3), 2 * m + 3 * (m @ m)),
    ):  # fmt: skip
        checks.add(name, got, expected)
    q4, k2 = reals(4, 3, 2), reals(2, 3, 2)
    wide = np.repeat(k2, 2, 0)
    got = Tensor(q4).scaled_dot_product_attention(k2, k2, enable_gqa=True)
    checks.add("gqa", got, Tensor(q4).scaled_dot_product_attention(wide, wide).numpy())
    checks.run()
    singular = np.linalg.svd(Tensor(p).newton_schulz(4).numpy())[1]
    assert ((singular > 0.4) & (singular < 1.4)).all()


def pool(x: np.ndarray, k: int, s: int, pads: Any, ceil: bool) -> np.ndarray:
    """The largest of windows, by its definition."""
    (low, high), n = pads, x.shape[-1]
    over = n + low + high - k
    out = (-(-over // s) if ceil else over // s) + 1
    if ceil and (out - 1) * s >= n + low:
        out -= 1
    starts = [i * s - low for i in range(out)]
    return np.stack([x[..., max(a, 0) : min(a + k, n)].max(-1) for a in starts], -1)


def test_pools_and_windows():
    checks = Checks(rtol=1e-4)
    x = reals(2, 3, 11)
    t = Tensor(x)
    for k, s, pads, ceil in [(3, 2, (0, 0), True), (3, 3, (1, 1), True), (2, 3, (1, 0), True),
                             (4, 3, (0, 2), False)]:  # fmt: skip
        name = f"pool {k} {s} {pads} {ceil}"
        got = t.max_pool((k,), (s,), [pads], ceil_mode=ceil)
        checks.add(name, got, pool(x, k, s, pads, ceil))
    values, places = t.max_pool_with_indices((3,), (2,), 1)
    picked = np.take_along_axis(x, places.numpy(), 2)
    checks.add("indices", values, picked)
    distinct, at = t.max_pool_with_indices((2,), (2,))
    back = np.zeros((2, 3, 10), np.float32)
    np.put_along_axis(back, at.numpy(), distinct.numpy(), 2)
    checks.add("unpool", distinct.max_unpool(at, (2,)), back)
    checks.add(
        "avg ceil", t.avg_pool((3,), (2,), 0, ceil_mode=True)[..., -1], x[..., 8:].mean(-1) * 1
    )
    parts = [(k * 11 // 4, -(-(k + 1) * 11 // 4)) for k in range(4)]
    mean = np.stack([x[..., a:b].mean(-1) for a, b in parts], -1)
    checks.add("adaptive", t.adaptive_avg_pool((4,)), mean)
    checks.add("area", t.interpolate((4,), "area"), mean)
    checks.add("adaptive max", t.adaptive_max_pool((1,)), x.max(-1, keepdims=True))
    exact = np.floor((np.arange(7) + 0.5) * 11 / 7).astype(int)
    checks.add("nearest-exact", t.interpolate((7,), "nearest-exact"), x[..., exact])
    w = reals(4, 3, 4)
    same = t.conv1d(Tensor(w), padding="same")
    assert same.shape == (2, 4, 11)
    around = np.pad(x, ((0, 0), (0, 0), (1, 2)))
    slid = np.lib.stride_tricks.sliding_window_view(around, 4, 2)
    checks.add("same", same, np.einsum("bcpk,ock->bop", slid, w))
    checks.add("pairs", t.conv1d(Tensor(w), padding=[(1, 2)]), np.einsum("bcpk,ock->bop", slid, w))
    checks.add("flat", t.conv1d(Tensor(w), padding=[1, 2]), np.einsum("bcpk,ock->bop", slid, w))
    checks.run()
    for wrong in ([1, 2, 3], "mirror"):
        with pytest.raises(UopcError, match="padding"):
            t.conv1d(Tensor(w), padding=wrong)


def test_weighted_losses():
    x, target = reals(6, 4), np.array([0, 3, 1, 1, 2, 0])
    weight = np.abs(reals(4)) + 0.5
    logs = x - np.log(np.exp(x).sum(1, keepdims=True))
    nll = -logs[np.arange(6), target] * weight[target]
    checks = Checks(rtol=1e-4)
    got = Tensor(x).cross_entropy(Tensor(target), weight=Tensor(weight))
    checks.add("mean", got, nll.sum() / weight[target].sum())
    got = Tensor(logs).nll_loss(Tensor(target), "mean", 1, Tensor(weight))
    kept = target != 1
    checks.add("ignored", got, nll[kept].sum() / weight[target[kept]].sum())
    checks.run()


def test_draws():
    Tensor.manual_seed(5)
    weights = Tensor([0.0, 1.0, 3.0])
    drawn = weights.multinomial(4000, replacement=True).numpy()
    assert (drawn > 0).all() and abs((drawn == 2).mean() - 0.75) < 0.04
    once = Tensor([[1.0, 1.0, 1.0, 0.0]]).multinomial(3).numpy()
    assert sorted(once[0].tolist()) == [0, 1, 2]
    assert abs(Tensor.full((4000,), 0.25).bernoulli().numpy().mean() - 0.25) < 0.04
    assert Tensor.ones(3, 4, dtype="f64").randn_like().dtype == np.float64
    assert abs(Tensor.kaiming_normal(50, 50).numpy().std() - math.sqrt(2 / 50)) < 0.03


def test_buffers_and_dlpack_share_memory():
    floats = array.array("f", [1.0, 2.0])
    shared = Tensor.from_buffer(floats)
    floats[0] = 5.0
    assert (shared.element, shared.tolist()) == ("f32", [5.0, 2.0])
    assert Tensor(memoryview(np.arange(3, dtype=np.int16))).element == "i16"
    assert Tensor(array.array("d", [1.5])).element == "f64"
    t = Tensor([1.0, 2.0]).realize()
    first, second = np.from_dlpack(t), np.from_dlpack(t)
    assert np.shares_memory(first, second) and not first.flags.writeable
    assert t.data().readonly and t.data().tolist() == [1.0, 2.0]
    mine = np.from_dlpack(t, copy=True)
    mine[0] = 9.0
    assert t.tolist() == [1.0, 2.0]


def test_a_clone_is_no_leaf():
    w = Tensor([1.0, 2.0], requires_grad=True)
    c = w.clone()
    c *= 3.0
    c.sum().backward()
    assert w.grad is not None and w.grad.tolist() == [3.0, 3.0]
    assert c.grad is None and w.tolist() == [1.0, 2.0]
