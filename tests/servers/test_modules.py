"""Tests of private headers: definitions are copied from trees that have them in the supported form only."""

from fuzz.servers.modules import resource_owner_header

SOURCE = """\
typedef struct ResourceElem
{
	Datum		item;
} ResourceElem;

typedef struct ResourceHashElem
{
	ResourceElem elem;
	uint32		count;			/* of a patch */
} ResourceHashElem;

#define RESOWNER_ARRAY_SIZE 32
#define RESOWNER_HASH_MAX_ITEMS(capacity) \\
	Min(capacity - RESOWNER_ARRAY_SIZE, (capacity)/4 * 3)
#define MAX_RESOWNER_LOCKS 15

struct ResourceOwnerData
{
	ResourceOwner parent;
	uint8		narr;
	uint32		nhash;
	uint32		capacity;
};

typedef struct Later
{
	int			unknown;
} Later;
"""


def test_structures_and_constants_are_copied_exactly() -> None:
    header = resource_owner_header(SOURCE) or ""
    assert "uint32		count;			/* of a patch */" in header
    assert header.index("} ResourceElem;") < header.index("} ResourceHashElem;") < header.index("ResourceOwnerData")
    assert "#define MAX_RESOWNER_LOCKS 15" in header
    assert "HASH_MAX_ITEMS" not in header
    assert header.rstrip().endswith("uint32		capacity;\n};")


def test_other_resource_owners_give_no_header() -> None:
    assert resource_owner_header(SOURCE.replace("nhash", "nitems")) is None
    assert resource_owner_header("") is None
