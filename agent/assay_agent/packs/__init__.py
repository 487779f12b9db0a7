"""Domain packs: read from folders, envelopes and the store, checked whole, and reduced to what one run uses.

    folders    a pack's folder → its document, with the file each part came from
    checking   what is wrong with a document, one line each with file and place
    shelf      which pack a name means: shipped folders, further folders, then imported ones
    choosing   the areas and templates of one run; a project's own prompts win over the pack's
    profiles   the merged profile schema, and what a project's profile lacks
    envelope   the one-file form, for import and export
    skeleton   the files of a new pack

`wiring` and the command line call it; nothing here touches a store or a warehouse.
"""

from assay_agent.packs.checking import Problem
from assay_agent.packs.choosing import category_of, selected_areas, templates
from assay_agent.packs.envelope import packed, unpacked
from assay_agent.packs.folders import examine, read_pack
from assay_agent.packs.profiles import check_profile, merged_schema, profile_problems
from assay_agent.packs.shelf import Shelf, Shelved
from assay_agent.packs.skeleton import write_skeleton

__all__ = [
    "Problem",
    "Shelf",
    "Shelved",
    "category_of",
    "check_profile",
    "examine",
    "merged_schema",
    "packed",
    "profile_problems",
    "read_pack",
    "selected_areas",
    "templates",
    "unpacked",
    "write_skeleton",
]
