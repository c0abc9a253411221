"""Prints python.jsonl: what repr prints of a value, and the JSON that stands for the value.

    python3 python.py > python.jsonl
"""
import collections, dataclasses, datetime, decimal, enum, json, math, pathlib, uuid


@dataclasses.dataclass
class Block:
    text: str
    more: object = None


class Outer:
    @dataclasses.dataclass
    class Inner:
        a: int


def local():
    @dataclasses.dataclass
    class Local:
        a: int

    return Local(1)


class Color(enum.Enum):
    RED = 1
    BLUE = "blue"
    BOTH = (1, "two")


class Perm(enum.Flag):
    R = 4
    W = 2


Point = collections.namedtuple("Point", "x y")


@dataclasses.dataclass
class Empty:
    pass


def plain(v):
    """What json.dumps is to write for v."""
    if isinstance(v, enum.Enum):
        return plain(v.value)
    if dataclasses.is_dataclass(v):
        return {f.name: plain(getattr(v, f.name)) for f in dataclasses.fields(v)}
    if isinstance(v, Point):
        return {k: plain(x) for k, x in v._asdict().items()}
    if isinstance(v, dict):
        return {k: plain(x) for k, x in v.items()}
    if isinstance(v, (list, tuple, set, frozenset, collections.deque)):
        return [plain(x) for x in v]
    if isinstance(v, (bytes, bytearray)):
        return v.decode("utf-8", "replace")
    if isinstance(v, float) and not math.isfinite(v):
        return None
    if isinstance(v, (datetime.datetime, datetime.date)):
        return v.isoformat()
    if isinstance(v, (uuid.UUID, decimal.Decimal, pathlib.PurePath)):
        return str(v)
    if isinstance(v, str):
        return v.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    return v


hour = datetime.timezone(datetime.timedelta(hours=1))
for value in [
    None, True, False, 0, -1, 12345678901234567890123, 1.5, -2.5, 1e20, 1e-07, 0.1, -0.0,
    float("nan"), float("inf"), float("-inf"), [float("nan"), 1, -math.inf],
    "", "plain", "it's", 'a "quote"', "both ' and \"", "a\nb\tc\rd\\e", "\x00\x1b\x7f\xe9\u20ac\U0001f570é<&>", "\u2028", "\ud800",
    b"", b"abc", b"it's", b"\x00\xff\n\t\\", "日".encode(), bytearray(b"ab"),
    [], (), {}, set(), frozenset(), [1], (1,), {1}, frozenset({"a"}), (1, 2), [[], {}, ()],
    {"a": 1}, {1: 2, None: 3, True: 4, 1.5: 5}, {"a": {"b": [1, (2, {"c"})]}},
    Block("a"), [Block("it's", Block("b")), Block("c", {"k": [1, -2.5, 1e-07], "n": None})], Outer.Inner(1), local(), Empty(), Point(1, "b"),
    Color.RED, Color.BLUE, Color.BOTH, {"color": Color.RED}, [Perm.R, Perm.R | Perm.W], Block("e", Color.BLUE),
    datetime.datetime(2026, 3, 4, 9, 10), datetime.datetime(2026, 3, 4, 9, 10, 11), datetime.datetime(2026, 3, 4, 9, 10, 11, 12),
    datetime.datetime(2026, 3, 4, 0, 0), datetime.datetime(2026, 3, 4, 9, 10, tzinfo=datetime.timezone.utc),
    datetime.datetime(2026, 3, 4, 9, 10, 11, tzinfo=hour), datetime.datetime(2026, 3, 4, 9, 10, tzinfo=hour, fold=1),
    datetime.datetime(2026, 3, 4, 9, 10, fold=1),
    datetime.datetime(2026, 3, 4, 9, 10, tzinfo=datetime.timezone(datetime.timedelta(hours=-5), "EST")), datetime.date(2026, 3, 4),
    {"at": datetime.date(987, 3, 4), "b": datetime.datetime(2026, 12, 31, 23, 59, 59, 999999)},
    uuid.UUID(int=7), decimal.Decimal("1.50"), pathlib.PurePosixPath("/a b"), collections.deque([1, 2]), collections.deque([]),
]:
    print(json.dumps({"repr": repr(value), "json": plain(value)}))
