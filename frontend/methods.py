"""The methods of Tensor, attached by theme: each is a function of a file of its own."""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

from uopc.frontend import (
    activations,
    arranging,
    autodiff,
    creation,
    elementwise,
    indexing,
    movement,
    operators,
    ordering,
    products,
    reals,
    reductions,
    special,
    statistics,
    windows,
)
from uopc.frontend.spellings import takes_other_spellings

if TYPE_CHECKING:
    from uopc.frontend.core import Operand
    from uopc.frontend.tensor import Tensor


@takes_other_spellings
class Methods:
    """What a Tensor can do; see the functions themselves."""

    __slots__ = ()

    # -- elementwise -------------------------------------------------------------------------------

    add = elementwise.add
    sub = elementwise.sub
    mul = elementwise.mul
    div = elementwise.div
    floordiv = elementwise.floordiv
    truncdiv = elementwise.truncdiv
    mod = elementwise.mod
    fmod = elementwise.fmod
    pow = elementwise.pow
    square = elementwise.square
    cube = elementwise.cube
    maximum = elementwise.maximum
    minimum = elementwise.minimum
    neg = elementwise.neg
    abs = elementwise.abs
    sign = elementwise.sign
    clamp = elementwise.clamp
    lerp = elementwise.lerp
    addcmul = elementwise.addcmul
    addcdiv = elementwise.addcdiv
    copysign = elementwise.copysign
    lt = elementwise.lt
    le = elementwise.le
    gt = elementwise.gt
    ge = elementwise.ge
    masked_fill = elementwise.masked_fill
    isnan = elementwise.isnan
    isinf = elementwise.isinf
    isfinite = elementwise.isfinite
    isclose = elementwise.isclose
    logical_not = elementwise.logical_not
    logical_and = elementwise.logical_and
    logical_or = elementwise.logical_or
    logical_xor = elementwise.logical_xor
    bitwise_and = elementwise.bitwise_and
    bitwise_or = elementwise.bitwise_or
    bitwise_xor = elementwise.bitwise_xor
    bitwise_not = elementwise.bitwise_not
    lshift = elementwise.lshift
    rshift = elementwise.rshift
    short = elementwise.short
    byte = elementwise.byte
    char = elementwise.char
    positive = elementwise.positive
    popcount = elementwise.popcount
    cast = elementwise.cast
    bitcast = elementwise.bitcast
    double = elementwise.double
    half = elementwise.half
    bfloat16 = elementwise.bfloat16
    long = elementwise.long
    floor = elementwise.floor
    ceil = elementwise.ceil
    trunc = elementwise.trunc
    round = elementwise.round
    frac = elementwise.frac
    reciprocal = elementwise.reciprocal
    logaddexp = elementwise.logaddexp
    hypot = elementwise.hypot
    atan2 = elementwise.atan2
    where = elementwise.choose
    float = elementwise.float_
    int = elementwise.int_
    bool = elementwise.bool_
    __add__ = elementwise.add
    __sub__ = elementwise.sub
    __mul__ = elementwise.mul
    __truediv__ = elementwise.div
    __floordiv__ = elementwise.floordiv
    __mod__ = elementwise.mod
    __pow__ = elementwise.pow
    __neg__ = elementwise.neg
    __abs__ = elementwise.abs
    __invert__ = elementwise.bitwise_not
    __and__ = elementwise.bitwise_and
    __or__ = elementwise.bitwise_or
    __xor__ = elementwise.bitwise_xor
    __lshift__ = elementwise.lshift
    __rshift__ = elementwise.rshift
    __lt__ = elementwise.lt
    __le__ = elementwise.le
    __gt__ = elementwise.gt
    __ge__ = elementwise.ge
    eq = elementwise.eq
    ne = elementwise.ne
    clip = elementwise.clamp
    astype = elementwise.cast
    to = elementwise.cast
    type = elementwise.cast
    subtract = elementwise.sub
    multiply = elementwise.mul
    divide = elementwise.div
    true_divide = elementwise.div
    floor_divide = elementwise.floordiv
    remainder = elementwise.mod
    negative = elementwise.neg
    absolute = elementwise.abs
    less = elementwise.lt
    less_equal = elementwise.le
    greater = elementwise.gt
    greater_equal = elementwise.ge
    not_equal = elementwise.ne
    arctan2 = elementwise.atan2
    fix = elementwise.trunc
    sgn = elementwise.sign

    def __eq__(self, other: object) -> Tensor:  # pyright: ignore[reportIncompatibleMethodOverride] (elementwise, as in numpy)
        return elementwise.eq(cast("Tensor", self), cast("Operand", other))

    def __ne__(self, other: object) -> Tensor:  # pyright: ignore[reportIncompatibleMethodOverride] (elementwise, as in numpy)
        return elementwise.ne(cast("Tensor", self), cast("Operand", other))

    __hash__ = object.__hash__

    # -- the other operators -----------------------------------------------------------------------

    __radd__ = operators.radd
    __rsub__ = operators.rsub
    __rmul__ = operators.rmul
    __rtruediv__ = operators.rtruediv
    __rfloordiv__ = operators.rfloordiv
    __rmod__ = operators.rmod
    __rpow__ = operators.rpow
    __rmatmul__ = operators.rmatmul
    __rand__ = operators.rand
    __ror__ = operators.ror
    __rxor__ = operators.rxor
    __iadd__ = operators.iadd
    __isub__ = operators.isub
    __imul__ = operators.imul
    __itruediv__ = operators.itruediv
    __ifloordiv__ = operators.ifloordiv
    __imod__ = operators.imod
    __ipow__ = operators.ipow
    __imatmul__ = operators.imatmul
    __iand__ = operators.iand
    __ior__ = operators.ior
    __ixor__ = operators.ixor
    __ilshift__ = operators.ilshift
    __irshift__ = operators.irshift
    __setitem__ = operators.setitem
    __iter__ = operators.iterate
    __contains__ = operators.contains
    __format__ = operators.text
    __rlshift__ = operators.rlshift
    __rrshift__ = operators.rrshift
    __divmod__ = operators.divmod_
    __rdivmod__ = operators.rdivmod
    __pos__ = elementwise.positive
    __round__ = elementwise.round
    assign = operators.assign

    # -- functions of reals ------------------------------------------------------------------------

    sqrt = reals.sqrt
    rsqrt = reals.rsqrt
    cbrt = reals.cbrt
    exp = reals.exp
    exp2 = reals.exp2
    expm1 = reals.expm1
    log = reals.log
    log2 = reals.log2
    log10 = reals.log10
    log1p = reals.log1p
    sin = reals.sin
    cos = reals.cos
    tan = reals.tan
    asin = reals.asin
    acos = reals.acos
    atan = reals.atan
    sinh = reals.sinh
    cosh = reals.cosh
    tanh = reals.tanh
    asinh = reals.asinh
    acosh = reals.acosh
    atanh = reals.atanh
    erf = reals.erf
    arcsin = reals.asin
    arccos = reals.acos
    arctan = reals.atan
    arcsinh = reals.asinh
    arccosh = reals.acosh
    arctanh = reals.atanh

    # -- less common functions of elements ---------------------------------------------------------

    erfc = special.erfc
    logit = special.logit
    sinc = special.sinc
    xlogy = special.xlogy
    heaviside = special.heaviside
    nan_to_num = special.nan_to_num
    signbit = special.signbit
    isposinf = special.isposinf
    isneginf = special.isneginf
    fmax = special.fmax
    fmin = special.fmin
    deg2rad = special.deg2rad
    rad2deg = special.rad2deg
    ldexp = special.ldexp
    float_power = special.float_power
    isin = special.isin
    allclose = special.allclose
    equal = special.equal
    clamp_min = special.clamp_min
    clamp_max = special.clamp_max

    # -- reductions --------------------------------------------------------------------------------

    sum = reductions.sum
    prod = reductions.prod
    max = reductions.max
    min = reductions.min
    any = reductions.any
    all = reductions.all
    mean = reductions.mean
    var = reductions.var
    std = reductions.std
    norm = reductions.norm
    count_nonzero = reductions.count_nonzero
    argmax = reductions.argmax
    argmin = reductions.argmin
    logsumexp = reductions.logsumexp
    softmax = reductions.softmax
    log_softmax = reductions.log_softmax
    softmin = reductions.softmin
    cumsum = reductions.cumsum
    cumprod = reductions.cumprod
    cummax = reductions.cummax
    cummin = reductions.cummin
    logcumsumexp = reductions.logcumsumexp
    amax = reductions.max
    amin = reductions.min

    # -- statistics --------------------------------------------------------------------------------

    std_mean = statistics.std_mean
    var_mean = statistics.var_mean
    aminmax = statistics.aminmax
    ptp = statistics.ptp
    nansum = statistics.nansum
    nanmean = statistics.nanmean
    average = statistics.average
    median = statistics.median
    quantile = statistics.quantile
    cov = statistics.cov
    corrcoef = statistics.corrcoef
    cosine_similarity = statistics.cosine_similarity
    dist = statistics.dist

    # -- shapes ------------------------------------------------------------------------------------

    reshape = movement.reshape
    flatten = movement.flatten
    unflatten = movement.unflatten
    permute = movement.permute
    transpose = movement.transpose
    moveaxis = movement.moveaxis
    expand = movement.expand
    squeeze = movement.squeeze
    unsqueeze = movement.unsqueeze
    flip = movement.flip
    shrink = movement.shrink
    pad = movement.pad
    split = movement.split
    chunk = movement.chunk
    unbind = movement.unbind
    tile = movement.tile
    repeat_interleave = movement.repeat_interleave
    roll = movement.roll
    broadcast_to = movement.broadcast_to
    tril = movement.tril
    triu = movement.triu
    diag = movement.diag
    diagonal = movement.diagonal
    view = movement.reshape
    repeat = movement.tile
    swapaxes = movement.transpose
    swapdims = movement.transpose
    movedim = movement.moveaxis
    ravel = movement.flatten
    narrow = arranging.narrow
    select = arranging.select
    expand_as = arranging.expand_as
    reshape_as = arranging.reshape_as
    pad_to = arranging.pad_to
    shrink_to = arranging.shrink_to
    rot90 = arranging.rot90
    fliplr = arranging.fliplr
    flipud = arranging.flipud
    atleast_1d = arranging.atleast_1d
    atleast_2d = arranging.atleast_2d
    atleast_3d = arranging.atleast_3d
    tensor_split = arranging.tensor_split
    unfold = arranging.unfold
    diff = arranging.diff
    rearrange = arranging.rearrange
    view_as = arranging.reshape_as

    T = property(movement.reversed_axes)
    mT = property(movement.swapped_last)

    # -- indexing ----------------------------------------------------------------------------------

    take = indexing.take
    index_select = indexing.index_select
    take_along_dim = ordering.take_along_dim
    index_add = ordering.index_add
    index_copy = ordering.index_copy
    index_fill = ordering.index_fill
    index_put = ordering.index_put
    nonzero = ordering.nonzero
    masked_select = ordering.masked_select
    __getitem__ = indexing.getitem

    # -- order and place ---------------------------------------------------------------------------

    argsort = ordering.argsort
    sort = ordering.sort
    topk = ordering.topk
    gather = ordering.gather
    scatter = ordering.scatter
    scatter_add = ordering.scatter_add
    scatter_reduce = ordering.scatter_reduce
    kthvalue = ordering.kthvalue
    argwhere = ordering.nonzero
    one_hot = ordering.one_hot
    embedding = ordering.embedding
    searchsorted = ordering.searchsorted
    bincount = ordering.bincount

    # -- products ----------------------------------------------------------------------------------

    matmul = products.matmul
    dot = products.dot
    outer = products.outer
    linear = products.linear
    scaled_dot_product_attention = products.scaled_dot_product_attention
    __matmul__ = products.matmul
    mm = products.matmul
    bmm = products.matmul
    vdot = products.vdot
    tensordot = products.tensordot
    kron = products.kron
    cross = products.cross
    trace = products.trace
    addmm = products.addmm
    newton_schulz = products.newton_schulz
    baddbmm = products.addmm
    inner = products.dot
    ger = products.outer

    # -- windows -----------------------------------------------------------------------------------

    conv = windows.conv
    conv_transpose = windows.conv_transpose
    max_pool = windows.max_pool
    avg_pool = windows.avg_pool
    interpolate = windows.interpolate
    conv1d = windows.conv
    conv2d = windows.conv
    conv3d = windows.conv
    conv_transpose1d = windows.conv_transpose
    conv_transpose2d = windows.conv_transpose
    conv_transpose3d = windows.conv_transpose
    max_pool2d = windows.max_pool
    avg_pool2d = windows.avg_pool
    max_pool_with_indices = windows.max_pool_with_indices
    max_unpool = windows.max_unpool
    adaptive_avg_pool = windows.adaptive_avg_pool
    adaptive_max_pool = windows.adaptive_max_pool
    max_unpool2d = windows.max_unpool

    # -- networks ----------------------------------------------------------------------------------

    relu = activations.relu
    relu6 = activations.relu6
    leaky_relu = activations.leaky_relu
    prelu = activations.prelu
    threshold = activations.threshold
    sigmoid = activations.sigmoid
    hardsigmoid = activations.hardsigmoid
    logsigmoid = activations.logsigmoid
    softplus = activations.softplus
    silu = activations.silu
    quick_gelu = activations.quick_gelu
    gelu = activations.gelu
    elu = activations.elu
    celu = activations.celu
    selu = activations.selu
    mish = activations.mish
    hardswish = activations.hardswish
    hardtanh = activations.hardtanh
    softsign = activations.softsign
    tanhshrink = activations.tanhshrink
    softshrink = activations.softshrink
    hardshrink = activations.hardshrink
    glu = activations.glu
    normalize = activations.normalize
    layernorm = activations.layernorm
    layer_norm = activations.layer_norm
    rms_norm = activations.rms_norm
    group_norm = activations.group_norm
    instance_norm = activations.instance_norm
    batch_norm = activations.batch_norm
    dropout = activations.dropout
    cross_entropy = activations.cross_entropy
    nll_loss = activations.nll_loss
    sparse_categorical_crossentropy = activations.sparse_categorical_crossentropy
    binary_crossentropy = activations.binary_cross_entropy
    binary_crossentropy_logits = activations.binary_cross_entropy_with_logits
    batchnorm = activations.batch_norm
    smooth_l1_loss = activations.huber_loss
    binary_cross_entropy = activations.binary_cross_entropy
    binary_cross_entropy_with_logits = activations.binary_cross_entropy_with_logits
    mse_loss = activations.mse_loss
    l1_loss = activations.l1_loss
    huber_loss = activations.huber_loss
    kl_div = activations.kl_div
    sequential = activations.sequential
    swish = activations.silu

    # -- gradients ---------------------------------------------------------------------------------

    backward = autodiff.backward
    gradient = autodiff.gradient

    # -- from nothing, and of several --------------------------------------------------------------

    full = staticmethod(creation.full)
    zeros = staticmethod(creation.zeros)
    ones = staticmethod(creation.ones)
    arange = staticmethod(creation.arange)
    linspace = staticmethod(creation.linspace)
    eye = staticmethod(creation.eye)
    zeros_like = creation.zeros_like
    ones_like = creation.ones_like
    full_like = creation.full_like
    rand_like = creation.rand_like
    randn_like = creation.randn_like
    bernoulli = creation.bernoulli
    multinomial = creation.multinomial
    empty_like = creation.zeros_like
    empty = staticmethod(creation.empty)
    logspace = staticmethod(creation.logspace)
    scaled_uniform = staticmethod(creation.scaled_uniform)
    kaiming_normal = staticmethod(creation.kaiming_normal)
    manual_seed = staticmethod(creation.manual_seed)
    rand = staticmethod(creation.rand)
    randn = staticmethod(creation.randn)
    randint = staticmethod(creation.randint)
    uniform = staticmethod(creation.uniform)
    normal = staticmethod(creation.normal)
    randperm = staticmethod(creation.randperm)
    glorot_uniform = staticmethod(creation.glorot_uniform)
    kaiming_uniform = staticmethod(creation.kaiming_uniform)
    cat = movement.cat
    stack = movement.stack
    broadcast_tensors = staticmethod(movement.broadcast_tensors)
    meshgrid = staticmethod(movement.meshgrid)
    vstack = staticmethod(arranging.vstack)
    hstack = staticmethod(arranging.hstack)
    dstack = staticmethod(arranging.dstack)
    column_stack = staticmethod(arranging.column_stack)
    block_diag = staticmethod(arranging.block_diag)
    tril_indices = staticmethod(arranging.tril_indices)
    triu_indices = staticmethod(arranging.triu_indices)
    concatenate = movement.cat
    einsum = staticmethod(products.einsum)
    no_grad = staticmethod(autodiff.no_grad)
    which = staticmethod(elementwise.where)
