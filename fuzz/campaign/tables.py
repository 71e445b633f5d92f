"""The tables of a campaign's store. New ones may come; those there are stay, since older campaigns are read too."""

from sqlalchemy import JSON, Column, Float, Integer, MetaData, String, Table, Text

METADATA = MetaData()
CAMPAIGN = Table(
    "campaign",
    METADATA,
    Column("only", Integer, primary_key=True),
    Column("options", JSON, nullable=False, comment="what `pgduel fuzz` was given, for --resume"),
    Column("arms", JSON, nullable=False, comment="arm -> build, base and series"),
    Column("canaries", JSON, comment="planted and caught, when last tried"),
    Column("tally", JSON, nullable=False),
)
RANGE = Table(
    "range",
    METADATA,
    Column("number", Integer, primary_key=True, comment="place in the schedule"),
    Column("done", Integer, nullable=False, comment="how many of its cases, from the first on"),
)
FINDING = Table(
    "finding",
    METADATA,
    Column("number", Integer, primary_key=True),
    Column("fingerprint", String, unique=True, nullable=False),
    Column("oracle", String, nullable=False),
    Column("expected_arm", String, nullable=False),
    Column("suspect_arm", String, nullable=False),
    Column("origin", Text, nullable=False),
    Column("step", Integer),
    Column("summary", Text, nullable=False),
    Column("expected", Text, nullable=False),
    Column("actual", Text, nullable=False),
    Column("case_id", String, nullable=False),
    Column("case", Text, nullable=False, comment="the whole case, as fuzz/campaign/case_json.py writes it"),
    Column("reproducer", Text, comment="path of the script"),
)
REDUCTION = Table("reduction", METADATA, Column("fingerprint", String, primary_key=True, comment="reduced by now"))
BESIDE = Table(
    "beside",
    METADATA,
    Column("fingerprint", String, primary_key=True),
    Column("queries", JSON, nullable=False, comment="as the fields of Beside"),
)
VOTE = Table(
    "vote",
    METADATA,
    Column("fingerprint", String, primary_key=True),
    Column("suspect", String, nullable=False, comment="the arm that most others outvote"),
    Column("agreeing", JSON, nullable=False, comment="these others"),
)
OCCURRENCE = Table(
    "occurrence",
    METADATA,
    Column("fingerprint", String, primary_key=True),
    Column("case_id", String, primary_key=True),
)
SMALLEST = Table(
    "smallest",
    METADATA,
    Column("fingerprint", String, primary_key=True),
    Column("case", Text, nullable=False, comment="what reduction left of the case, or has left so far"),
    Column("finding", JSON, nullable=False, comment="what that shows, as the fields of Finding"),
    Column("shown", Integer, nullable=False, comment="in so many"),
    Column("runs", Integer, nullable=False, comment="runs of it"),
)
EFFORT = Table(
    "effort",
    METADATA,
    Column("fingerprint", String, primary_key=True),
    Column("seconds", Float, nullable=False, comment="that its reduction took, since it was begun or taken up again"),
)
BLAME = Table(
    "blame",
    METADATA,
    Column("fingerprint", String, primary_key=True),
    Column("told", JSON, nullable=False, comment="as Blame writes it"),
)
SPEC_FINDING = Table(
    "spec_finding",
    METADATA,
    Column("number", Integer, primary_key=True),
    Column("fingerprint", String, unique=True, nullable=False, comment="its occurrences are a spec and modes each"),
    Column("finding", JSON, nullable=False, comment="as the fields of Finding"),
    Column("spec", Text, nullable=False, comment="path of the spec that shows it"),
)
