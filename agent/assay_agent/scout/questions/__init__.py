"""What an analyst would ask of a table, as SQL with a stable key, the most telling first. Pure.

Every statement returns its evidence ready to be cited: groups with their size, rates with their base, the threshold it used, and what
matters most in the first rows. Families: profile (`profiles`), orphan (`joins`), missing, notnum, dup, dupkey, gap (`quality`), trend, season
(`time`), sep, group, conc, outlier, corr (`shape`), rate (`rates`); `scout/writer` has a file of the same name for the findings of each.
"""
