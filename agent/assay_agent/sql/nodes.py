"""Which nodes of a parsed statement the guard lets through: data, everything else is denied.

Functions are judged apart (`functions`); the few that a parser knows as a class of their own and that must never run
stand in `REFUSED_FUNCTIONS`. Names are those of the parser's classes.
"""

from __future__ import annotations

from assay_agent.sql.functions import names

LISTED_NODES = names("""
    Select Union Except Intersect SetOperation Subquery Values With CTE From Join Where Group Having Order Ordered Limit
    LimitOptions Offset Fetch Qualify Window WindowSpec Lateral Unnest Pivot PivotAlias PivotAny UnpivotColumns
    TableSample Table TableAlias Alias Aliases Column Identifier Star Literal Boolean Null Paren Tuple Var
    Cube Rollup GroupingSets Distinct Filter WithinGroup IgnoreNulls RespectNulls HavingMax
    Add Sub Mul Div IntDiv Mod Neg Not Is In Between EQ NEQ GT GTE LT LTE NullSafeEQ NullSafeNEQ Like ILike SimilarTo Glob
    Escape Any All DPipe BitwiseAnd BitwiseOr BitwiseXor BitwiseNot BitwiseLeftShift BitwiseRightShift
    Distance Overlaps Adjacent ExtendsLeft ExtendsRight Match
    Bracket Slice Dot Lambda Kwarg PropertyEQ Comprehension ForIn JSON JSONKeyValue JSONExtractQuote
    JSONPath JSONPathKey JSONPathRoot JSONPathSubscript JSONPathWildcard JSONPathSlice JSONPathSelector JSONPathUnion
    JSONPathRecursive JSONValue FormatJson OnCondition
    DataType DataTypeParam ColumnDef PseudoType Interval IntervalSpan AtTimeZone FromTimeZone Per
    HexString BitString ByteString RawString UnicodeString National
    RecursiveWithSearch MaterializedProperty TableColumn PositionalColumn Variadic WithOrdinality
    Day Hour Minute Second Month Year Week
    """)

TABLE_PARTS = frozenset(
    {"this", "db", "catalog", "alias", "joins", "laterals", "pivots", "sample", "ordinality", "only"}
)

REFUSED_FUNCTIONS = names("""
    ReadCSV ReadParquet ToFile LoadData NextValueFor Generator Secret Predict VectorSearch AIAgg AIClassify AIEmbed
    AIForecast AIGenerate AISimilarity AISummarizeAgg MLForecast MLTranslate GenerateEmbedding GenerateTable GenerateText
    GenerateBool GenerateDouble GenerateInt FeaturesAtTime XMLTable XMLGet OpenJSON ObjectId Encrypt EncryptRaw Decrypt
    DecryptRaw CurrentAccount CurrentAccountName CurrentAvailableRoles CurrentCatalog CurrentClient CurrentDatabase
    CurrentIpAddress CurrentOrganizationName CurrentOrganizationUser CurrentRegion CurrentRole CurrentRoleType
    CurrentSchema CurrentSchemas CurrentSecondaryRoles CurrentSession CurrentStatement CurrentTransaction CurrentUser
    CurrentUserId CurrentWarehouse SessionUser DynamicIdentifier StarMap Apply Search SearchIp
    """)
