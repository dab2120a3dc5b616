"""The direction of imports, held over the syntax tree: a module imports only what stands below it."""

from __future__ import annotations

import ast
import gc
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]

# From top to bottom. A module belongs to the first row whose name it is or lies under.
ROWS = [
    ["app"],
    ["annotator.cli"],
    ["annotator.dataset_commands", "annotator.model_commands", "annotator.prelabel_command"],
    ["annotator.terminal"],
    ["annotator.checking", "annotator.compiling", "annotator.benching", "annotator.comparing"],
    ["annotator.progress_bar"],
    ["annotator.ui.shell"],
    ["annotator.ui.panels"],
    ["annotator.ui.views", "annotator.ui.presence", "annotator.ui.origin_check"],
    ["annotator.ui.panel"],
    ["annotator.export_zip", "annotator.prelabel_job"],
    [
        "annotator.importing",
        "annotator.model_choice",
        "annotator.prelabel",
        "annotator.project_status",
        "annotator.ahead",
        "annotator.phrase_list",
    ],
    ["annotator.prelabelling"],
    ["annotator.workspace"],
    ["annotator.exporting", "annotator.pictures", "annotator.predictor", "annotator.suggesting"],
    [
        "annotator.cache",
        "annotator.recent_times",
        "annotator.feature_files",
        "annotator.folder",
        "annotator.previews",
        "annotator.store",
        "annotator.ui.canvas",
    ],
    ["annotator.feature_format"],
    [
        "annotator.exporters.coco",
        "annotator.exporters.coco_split",
        "annotator.exporters.masks",
        "annotator.exporters.yolo_seg",
    ],
    ["annotator.exporters._coco_forms"],
    ["annotator.exporters._coco_check"],
    ["annotator.exporters._coco_file"],
    [
        "annotator.exporters._chosen",
        "annotator.exporters._folder",
        "annotator.exporters._pictures",
        "annotator.exporters._split",
    ],
    ["annotator.exporters._coco_rows", "annotator.exporters._draft", "annotator.exporters._one_outline"],
    ["annotator.importers.coco"],
    ["annotator.exporters.protocol", "annotator.importers.protocol"],
    ["annotator.models"],
    ["annotator.dataset_names", "annotator.migrations", "annotator.repeats"],
    ["annotator.records"],
    ["annotator.errors"],
    ["engines.export"],
    ["engines.bench", "engines.compare"],
    ["engines.loader", "engines.triton_repository"],
    ["engines.engine_check"],
    ["engines.reference_check", "engines.side_by_side", "engines.check_cases"],
    ["engines.check_report"],
    ["engines.check_files"],
    [
        "engines.families.starter",
        "engines.families.sam3",
        "engines.families.sam3_danilobukvic",
        "engines.families.sam3_osam",
        "engines.families.sam3_samexporter",
        "engines.families.sam3_usls",
        "engines.runtimes",
    ],
    ["engines.families._sam3_foreign"],
    ["engines.families._starter", "engines.families._sam3"],
    ["engines.runtimes._onnxruntime", "engines.runtimes._tensorrt"],
    ["engines.tensorrt_engines"],
    ["engines.cuda_driver", "engines.graph_hash", "engines.triton_names"],
    ["engines.stage_times"],
    ["engines.protocols", "engines.discovery"],
    ["engines.graph_signature"],
    ["engines.bundle", "engines.graph_nodes"],
    ["engines.protobuf"],
    ["engines.types"],
    ["engines.contours", "engines.upsampling"],
    ["engines.masks", "engines.boxes", "engines.images"],
    ["engines.run_lengths", "engines.suppression", "engines.image_formats", "engines.image_search"],
    ["engines.errors"],
]
# Packages whose modules build on each other; in all others no module imports its neighbour.
ONE_ROOM = [
    "annotator.prelabelling",
    "annotator.store",
    "engines.export",
    "engines.families._starter",
    "engines.families._sam3",
    "engines.families._sam3_foreign",
    "engines.image_formats",
    "engines.runtimes._tensorrt",
    "engines.tensorrt_engines",
]
# Modules that define torch modules; they are imported only inside the functions that export.
TORCH_MODULES = [
    "engines.export.decoder_graph",
    "engines.export.geometry_graph",
    "engines.export.layers",
    "engines.export.roi_align",
    "engines.export.text_graph",
    "engines.export.vision_graph",
]
PACKAGES = [
    "annotator",
    "annotator.exporters",
    "annotator.importers",
    "annotator.ui",
    "annotator.ui.panels",
    "engines",
    "engines.families",
    "engines.runtimes",
]


def module_name(path: Path) -> str:
    parts = path.relative_to(ROOT).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def sources() -> list[Path]:
    return [ROOT / "app.py", *sorted((ROOT / "annotator").rglob("*.py")), *sorted((ROOT / "engines").rglob("*.py"))]


def lies_under(module: str, entry: str) -> bool:
    return module == entry or module.startswith(f"{entry}.")


def row_of(module: str) -> int:
    fits = [(len(entry), index) for index, row in enumerate(ROWS) for entry in row if lies_under(module, entry)]
    assert fits, f"{module} has no place in the layers: add it to ROWS where it belongs"
    return max(fits)[1]


@cache
def parsed(path: Path) -> ast.Module:
    """Without garbage collection: one in the middle makes CPython 3.11 fail with 'recursion depth mismatch'."""
    gc.disable()
    try:
        return ast.parse(path.read_text(encoding="utf-8"))
    finally:
        gc.enable()


def imports(path: Path) -> set[str]:
    found: set[str] = set()
    for node in ast.walk(parsed(path)):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path} imports by a relative name"
            from_package = {f"{node.module}.{alias.name}" for alias in node.names}
            found |= from_package if is_package(node.module) else {str(node.module)}
    return {name for name in found if name.partition(".")[0] in ("annotator", "engines", "app")}


def is_package(module: str | None) -> bool:
    return module is not None and (ROOT / module.replace(".", "/")).is_dir()


def same_room(first: str, second: str) -> bool:
    return any(lies_under(first, room) and lies_under(second, room) for room in ONE_ROOM)


@pytest.mark.parametrize("path", [path for path in sources() if module_name(path) not in PACKAGES], ids=module_name)
def test_a_module_imports_only_what_stands_below_it(path):
    module = module_name(path)
    for imported in imports(path):
        if imported in PACKAGES or same_room(module, imported):
            continue
        assert row_of(imported) > row_of(module), f"{module} imports {imported}, which is not below it"


def test_engines_know_nothing_of_the_annotator():
    for path in (ROOT / "engines").rglob("*.py"):
        assert not any(lies_under(name, "annotator") for name in imports(path)), path


@pytest.mark.parametrize(
    "heavy",
    "gradio onnxruntime tensorrt tensorrt_rtx cuda filelock tokenizers torch transformers tqdm ray fsspec".split(),
)
def test_heavy_packages_are_imported_only_inside_functions(heavy):
    for path in sources():
        if module_name(path) in TORCH_MODULES:
            continue
        at_once = imported_at_once(path)
        assert not any(lies_under(name, heavy) for name in at_once), f"{path} imports {heavy} when it is imported"
        assert not at_once & set(TORCH_MODULES), f"{path} imports torch by way of {at_once & set(TORCH_MODULES)}"


def imported_at_once(path: Path) -> set[str]:
    """Names imported when the module itself is."""
    names: set[str] = set()
    for node in parsed(path).body:
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            names |= {node.module or ""}
    return names


def test_no_module_has_more_than_400_lines():
    scripts = [path for kind in ("*.js", "*.css") for path in (ROOT / "annotator").rglob(kind)]
    for path in [*sources(), *scripts]:
        assert len(path.read_text(encoding="utf-8").splitlines()) <= 400, path
