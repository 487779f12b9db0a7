"""Which functions a statement may call, per dialect: data for `dialects`, read by the guard alone.

A function is listed when it only computes from its arguments. Left out on purpose: whatever touches files, network,
locks, sequences, sleeps, session settings, other statements, large objects, or tells about the server beyond its
version and the date; and what exists to allocate (`zeroblob`, `randomblob`). Names are lower-case.
"""

from __future__ import annotations


def names(text: str) -> frozenset[str]:
    """The words of a text as a set."""
    return frozenset(text.split())


_ANSI = names("""
    abs acos asin atan atan2 ceil ceiling cos degrees exp floor ln log log10 mod pi pow power radians round sign sin sqrt
    tan trunc coalesce nullif lower upper length substr substring trim ltrim rtrim replace count sum avg min max
    row_number rank dense_rank percent_rank cume_dist ntile lag lead first_value last_value nth_value
    current_date current_time current_timestamp cast extract position grouping grouping_id
""")

_ARRAY_ANSI = names("""
    acosh asinh atanh cbrt cosh cot factorial gcd lcm greatest least sinh tanh width_bucket random
    ascii bit_length btrim char_length character_length chr concat concat_ws initcap left right lpad rpad repeat reverse
    octet_length overlay split_part starts_with strpos string_to_array translate md5
    encode decode regexp_replace regexp_split_to_array regexp_matches regexp_extract regexp_extract_all regexp_full_match
    string_agg array_agg listagg group_concat any_value bool_and bool_or bit_and bit_or bit_xor corr covar_pop covar_samp
    regr_avgx regr_avgy regr_count regr_intercept regr_r2 regr_slope regr_sxx regr_sxy regr_syy
    stddev stddev_pop stddev_samp variance var_pop var_samp mode
    date_part date_trunc age now localtime localtimestamp transaction_timestamp to_timestamp make_date make_time
    make_timestamp make_timestamptz isfinite timezone date_bin
    array_append array_cat array_length array_position array_prepend array_remove array_to_string cardinality unnest
    row_to_json to_json json_array_length json_extract_path json_extract_path_text json_object json_array
    version row any all some exists array struct map typeof
""")

DUCKDB = (
    _ANSI
    | _ARRAY_ANSI
    | names("""
    add ago aggregate apply approx_count_distinct approx_quantile approx_top_k arbitrary arg_max arg_max_null arg_min
    arg_min_null argmax argmin even divide fdiv fmod favg fsum gamma lgamma geomean geometric_mean greatest_common_divisor
    least_common_multiple log2 mad median mean multiply subtract nextafter product round_even roundbankers sem signbit
    skewness kurtosis kurtosis_pop entropy first last fill histogram histogram_exact kahan_sum sumkahan sum_no_overflow
    max_by min_by quantile quantile_cont quantile_disc percentile_cont percentile_disc reservoir_quantile
    count_if countif count_star rank_dense wavg weighted_avg bitstring_agg isinf isnan xor if ifnull
    equi_width_bins is_histogram_other_bin hash md5_number md5_number_lower md5_number_upper sha1 sha256
    bar base64 bin bit_count bit_position bitstring get_bit set_bit from_base64 from_binary from_hex hex unhex unbin
    to_base to_base64 to_binary to_hex url_decode url_encode uuid gen_random_uuid uuid_extract_timestamp
    contains damerau_levenshtein editdist3 hamming mismatches jaccard jaro_similarity jaro_winkler_similarity levenshtein
    ends_with prefix suffix format format_bytes parse_formatted_bytes printf instr lcase ucase left_grapheme
    right_grapheme length_grapheme substring_grapheme len strlen like_escape ilike_escape not_like_escape
    not_ilike_escape nfc_normalize ord unicode strip_accents string_split string_split_regex str_split str_split_regex
    split regexp_escape regexp_split_to_table parse_dirname parse_dirpath parse_filename parse_path
    century day dayname dayofmonth dayofweek dayofyear decade epoch epoch_ms epoch_ns epoch_us era hour isodow isoyear
    julian last_day microsecond millennium millisecond minute month monthname nanosecond quarter second week weekday
    weekofyear year yearweek date_add date_diff date_sub datediff datepart datesub datetrunc days_in_month strftime
    strptime try_strptime time_bucket timezone_hour timezone_minute today get_current_timestamp get_current_time
    current_localtime current_localtimestamp make_timestamp_ms make_timestamp_ns normalized_interval
    to_centuries to_days to_decades to_hours to_microseconds to_millennia to_milliseconds to_minutes to_months
    to_quarters to_seconds to_weeks to_years
    array_aggr array_aggregate array_apply array_concat array_contains array_cosine_distance array_cosine_similarity
    array_cross_product array_distance array_distinct array_dot_product array_extract array_filter array_grade_up
    array_has array_has_all array_has_any array_indexof array_inner_product array_intersect array_negative_dot_product
    array_negative_inner_product array_pop_back array_pop_front array_push_back array_push_front array_reduce
    array_resize array_reverse array_reverse_sort array_select array_slice array_sort array_transform array_unique
    array_value array_where array_zip element_at filter flatten generate_subscripts grade_up
    list list_aggr list_aggregate list_any_value list_append list_apply list_approx_count_distinct list_avg list_bit_and
    list_bit_or list_bit_xor list_bool_and list_bool_or list_cat list_concat list_contains list_cosine_distance
    list_cosine_similarity list_count list_distance list_distinct list_dot_product list_element list_entropy list_extract
    list_filter list_first list_grade_up list_has list_has_all list_has_any list_histogram list_indexof
    list_inner_product list_intersect list_kurtosis list_kurtosis_pop list_last list_mad list_max list_median list_min
    list_mode list_negative_dot_product list_negative_inner_product list_pack list_position list_prepend list_product
    list_reduce list_resize list_reverse list_reverse_sort list_select list_sem list_skewness list_slice list_sort
    list_stddev_pop list_stddev_samp list_string_agg list_sum list_transform list_unique list_value list_var_pop
    list_var_samp list_where list_zip reduce
    map_concat map_contains map_contains_entry map_contains_value map_entries map_extract map_extract_value
    map_from_entries map_keys map_values
    struct_concat struct_contains struct_extract struct_extract_at struct_has struct_indexof struct_insert struct_keys
    struct_pack struct_position struct_update struct_values union_extract union_tag union_value
    enum_code enum_first enum_last enum_range enum_range_boundary
    array_to_json from_json from_json_strict json json_contains json_exists json_extract json_extract_string json_keys
    json_merge_patch json_pretty json_quote json_structure json_transform json_transform_strict json_type json_valid
    json_value json_group_array json_group_object json_group_structure
    columns generate_series range try ceiling cast_to_type can_cast_implicitly constant_or_null pg_typeof
    """)
)

SQLITE = _ANSI | names("""
    acosh asinh atanh cosh sinh tanh log2 char concat concat_ws date datetime time julianday strftime unixepoch timediff
    format printf glob group_concat string_agg hex unhex ifnull iif if instr like likely unlikely likelihood
    median percentile percentile_cont percentile_disc octet_length quote random soundex total typeof unicode
    json json_array json_array_length json_error_position json_extract json_group_array json_group_object json_insert
    json_object json_patch json_pretty json_quote json_remove json_replace json_set json_type json_valid
    json_each json_tree sqlite_version exists
""")

POSTGRES = (
    _ANSI
    | _ARRAY_ANSI
    | names("""
    acosd asind atand atan2d cosd cotd sind tand div erf erfc gamma lgamma min_scale scale trim_scale random_normal
    casefold char_length convert convert_from convert_to format lower_inc lower_inf upper_inc upper_inf normalize
    parse_ident quote_ident quote_literal quote_nullable regexp_count regexp_instr regexp_like regexp_match
    regexp_split_to_table regexp_substr string_to_table to_ascii to_bin to_hex to_oct unistr unicode_assigned
    bit_count get_bit get_byte set_bit set_byte sha224 sha256 sha384 sha512 crc32 crc32c
    to_char to_date to_number clock_timestamp statement_timestamp timeofday date_add date_subtract justify_days
    justify_hours justify_interval make_interval timezone
    enum_first enum_last enum_range area center diagonal diameter height width isclosed isopen npoints path point
    polygon radius slope box circle line lseg bound_box
    abbrev broadcast family host hostmask inet_merge inet_same_family masklen netmask network set_masklen text
    macaddr8_set7bit
    array_to_tsvector get_current_ts_config numnode plainto_tsquery phraseto_tsquery websearch_to_tsquery querytree
    setweight strip to_tsquery to_tsvector json_to_tsvector jsonb_to_tsvector ts_delete ts_filter ts_headline ts_rank
    ts_rank_cd tsquery_phrase tsvector_to_array
    array_dims array_fill array_lower array_ndims array_positions array_replace array_reverse array_sample array_shuffle
    array_sort array_upper trim_array generate_subscripts generate_series
    isempty lower_inf range_merge multirange range_agg range_intersect_agg int4range int8range numrange tsrange
    tstzrange daterange int4multirange int8multirange nummultirange tsmultirange tstzmultirange datemultirange
    array_to_json json_build_array json_build_object json_each json_each_text json_array_elements
    json_array_elements_text json_object_keys json_populate_record json_populate_recordset json_to_record
    json_to_recordset json_strip_nulls json_typeof json_exists json_query json_value json_scalar json_serialize
    jsonb_array_elements jsonb_array_elements_text jsonb_array_length jsonb_build_array jsonb_build_object jsonb_each
    jsonb_each_text jsonb_extract_path jsonb_extract_path_text jsonb_insert jsonb_object jsonb_object_keys
    jsonb_path_exists jsonb_path_match jsonb_path_query jsonb_path_query_array jsonb_path_query_first
    jsonb_populate_record jsonb_populate_recordset jsonb_pretty jsonb_set jsonb_set_lax jsonb_strip_nulls
    jsonb_to_record jsonb_to_recordset jsonb_typeof to_jsonb jsonb_contains jsonb_exists
    jsonb_path_exists_tz jsonb_path_match_tz jsonb_path_query_tz jsonb_path_query_array_tz jsonb_path_query_first_tz
    every json_agg json_agg_strict json_object_agg json_objectagg json_arrayagg jsonb_agg jsonb_agg_strict
    jsonb_object_agg percentile_cont percentile_disc xmlagg
    pg_typeof gen_random_uuid uuidv4 uuidv7 uuid_extract_timestamp uuid_extract_version num_nonnulls num_nulls
    similarity word_similarity strict_word_similarity levenshtein levenshtein_less_equal soundex difference metaphone
    dmetaphone daitch_mokotoff unaccent earth_distance
    lower upper date timestamp timestamptz time interval numeric int4 int8 float4 float8 bool
    st_area st_distance st_x st_y st_within st_contains st_intersects st_centroid st_length st_point st_makepoint
    st_setsrid st_transform st_astext st_asgeojson st_dwithin st_buffer st_geomfromtext
    """)
)

BIGQUERY = _ANSI | names("""
    acosh asinh atanh cbrt cosh cot coth csc csch sec sech sinh tanh div greatest least ieee_divide is_inf is_nan rand
    range_bucket safe_add safe_divide safe_multiply safe_negate safe_subtract bit_count
    euclidean_distance cosine_distance edit_distance
    any_value array_agg array_concat_agg bit_and bit_or bit_xor countif corr covar_pop covar_samp logical_and logical_or
    max_by min_by stddev stddev_pop stddev_samp string_agg var_pop var_samp variance percentile_cont percentile_disc
    approx_count_distinct approx_quantiles approx_top_count approx_top_sum
    hll_count.init hll_count.extract hll_count.merge hll_count.merge_partial
    kll_quantiles.init_int64 kll_quantiles.init_float64 kll_quantiles.extract_int64 kll_quantiles.extract_float64
    kll_quantiles.merge_int64 kll_quantiles.merge_float64 kll_quantiles.extract_point_int64
    kll_quantiles.extract_point_float64 kll_quantiles.merge_partial
    ascii byte_length bytes char_length character_length chr code_points_to_bytes code_points_to_string collate concat
    contains_substr ends_with format from_base32 from_base64 from_hex initcap instr left lpad normalize
    normalize_and_casefold octet_length regexp_contains regexp_extract regexp_extract_all regexp_instr regexp_replace
    regexp_substr repeat reverse right rpad safe_convert_bytes_to_string soundex split starts_with strpos to_base32
    to_base64 to_code_points to_hex translate unicode
    md5 sha1 sha256 sha512 farm_fingerprint generate_uuid
    date datetime time timestamp current_datetime date_add date_sub date_diff date_trunc date_bucket date_from_unix_date
    unix_date datetime_add datetime_sub datetime_diff datetime_trunc datetime_bucket time_add time_sub time_diff time_trunc
    timestamp_add timestamp_sub timestamp_diff timestamp_trunc timestamp_bucket timestamp_seconds timestamp_millis
    timestamp_micros unix_seconds unix_millis unix_micros last_day parse_date parse_datetime parse_time parse_timestamp
    format_date format_datetime format_time format_timestamp string make_interval justify_days justify_hours
    justify_interval interval
    array_concat array_first array_last array_length array_reverse array_slice array_to_string generate_array
    generate_date_array generate_timestamp_array array_filter array_transform array_includes array_includes_any
    array_includes_all array_is_distinct array_max array_min array_sum array_avg array_zip flatten offset ordinal
    safe_offset safe_ordinal range range_start range_end range_contains range_overlaps range_intersect
    generate_range_array
    bool int64 float64 float32 lax_bool lax_int64 lax_float64 lax_string json_array json_array_append json_array_insert
    json_extract json_extract_array json_extract_scalar json_extract_string_array json_flatten json_keys json_object
    json_query json_query_array json_remove json_set json_strip_nulls json_type json_value json_value_array parse_json
    to_json to_json_string bool_array float64_array int64_array string_array
    if ifnull nullifzero zeroifnull safe_cast typeof
    net.host net.ip_from_string net.ip_net_mask net.ip_to_string net.ip_trunc net.ipv4_from_int64 net.ipv4_to_int64
    net.public_suffix net.reg_domain net.safe_ip_from_string
    st_area st_asgeojson st_astext st_boundary st_boundingbox st_buffer st_centroid st_clusterdbscan st_contains
    st_convexhull st_coveredby st_covers st_difference st_distance st_dwithin st_equals st_geogfromgeojson
    st_geogfromtext st_geogpoint st_geohash st_intersection st_intersects st_isempty st_length st_makeline st_numpoints
    st_perimeter st_simplify st_snaptogrid st_touches st_union st_union_agg st_within st_x st_y s2_cellidfrompoint
    int integer float numeric bignumeric decimal bigdecimal array struct unnest week
    is_json exists any all some
""")

REDSHIFT = _ANSI | names("""
    cbrt cot dexp dlog1 dlog10 degrees greatest least random
    approximate any_value listagg median bool_and bool_or bit_and bit_or stddev stddev_pop stddev_samp variance var_pop
    var_samp percentile_cont percentile_disc ratio_to_report hll hll_create_sketch hll_cardinality hll_combine
    hll_combine_sketches
    ascii bpcharcmp bttext_pattern_cmp btrim bttrim char_length character_length textlen charindex chr collate concat crc32
    func_sha1 initcap left len lpad md5 octetindex octet_length quote_ident quote_literal regexp_count regexp_instr
    regexp_replace regexp_substr repeat replicate reverse right rpad sha sha1 sha2 soundex difference split_part
    split_to_array strpos strtol to_hex translate substring_index fnv_hash checksum farmfingerprint64 from_hex
    from_varbyte to_varbyte bit_length
    convert_timezone date_cmp date_cmp_timestamp date_cmp_timestamptz date_diff date_part date_part_year
    date_trunc dateadd datediff getdate interval_cmp last_day months_between next_day timeofday timestamp_cmp
    timestamp_cmp_date timestamp_cmp_timestamptz timestamptz_cmp timestamptz_cmp_date timestamptz_cmp_timestamp timezone
    to_timestamp to_char to_date to_number trunc sysdate age now
    nvl nvl2 decode case convert isnull
    json_extract_path_text json_extract_array_element_text json_array_length json_parse json_serialize
    json_serialize_to_varbyte is_valid_json is_valid_json_array can_json_parse json_typeof json_size
    array array_concat array_contains array_distinct array_except array_flatten array_intersection array_position
    array_positions array_sort array_to_string array_union get_array_length subarray object object_transform
    is_array is_bigint is_boolean is_char is_decimal is_float is_integer is_object is_scalar is_smallint is_super
    is_varchar get_number_attributes
    lower_attribute_names upper_attribute_names dense_rank
    st_area st_asgeojson st_astext st_azimuth st_boundary st_buffer st_centroid st_contains st_covers st_distance
    st_distancesphere st_dwithin st_geohash st_geomfromtext st_geomfromgeojson st_intersection st_intersects st_isvalid
    st_length st_makepoint st_point st_polygon st_setsrid st_srid st_transform st_union st_within st_x st_y
    h3_frompoint h3_tolatitude h3_tolongitude
    date timestamp timestamptz time timetz interval numeric int2 int4 int8 float4 float8 bool text varchar char
    version exists any all some row generate_series unnest pi
""")

TABLE_FUNCTIONS = {
    "bigquery": names("unnest"),
    "redshift": names("generate_series"),
    "duckdb": names("unnest generate_series range generate_subscripts regexp_split_to_table"),
    "sqlite": names("json_each json_tree"),
    "postgres": names("""
        unnest generate_series generate_subscripts regexp_split_to_table string_to_table regexp_matches
        json_each json_each_text json_array_elements json_array_elements_text json_object_keys json_to_record
        json_to_recordset json_populate_recordset jsonb_each jsonb_each_text jsonb_array_elements
        jsonb_array_elements_text jsonb_object_keys jsonb_to_record jsonb_to_recordset jsonb_populate_recordset
        jsonb_path_query
    """),
}
"""Functions that may stand in FROM: they make rows from their arguments and nothing else."""
