"""The simulated libraries against what programs ask of them: names, versions, refusals.

Which installed wheels are looked at: those of the Python in VRAMTRACE_TEST_PYTHON, else of the one that runs
this file.
"""

from __future__ import annotations

import ctypes
import json
import os
import pathlib
import re
import subprocess
import sys

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
BUILD = pathlib.Path(os.environ.get("VRAMTRACE_BUILD", ROOT / "build" / "release")).resolve()
FOLDER = BUILD / "lib" / "vramtrace" / "simulator"
MANIFESTS = BUILD / "lib" / "vramtrace" / "simulator-manifests"
sys.path.insert(0, str(ROOT / "preload" / "simulator" / "stubs"))
import elf  # noqa: E402
import export_list  # noqa: E402
import exports  # noqa: E402

LIBRARIES = {path.stem: json.loads(path.read_text()) for path in sorted(MANIFESTS.glob("*.json"))}
needs_build = pytest.mark.skipif(not LIBRARIES, reason=f"no simulated libraries in {BUILD}")
each_library = pytest.mark.parametrize("library", LIBRARIES.values(), ids=LIBRARIES.keys())
#: All that a preload library may need; libc and its parts of older glibc.
ALLOWED_NEEDS = re.compile(r"(libc|libm|libdl|libpthread|librt|ld-linux-x86-64|ld-linux-aarch64)\.so\.\d")


def site_packages() -> list[str]:
    python = os.environ.get("VRAMTRACE_TEST_PYTHON", sys.executable)
    script = "import json, site, sys; print(json.dumps([p for p in sys.path if p.endswith('site-packages')]))"
    return json.loads(
        subprocess.run([python, "-c", script], check=True, capture_output=True, text=True).stdout
    )


def preload() -> str:
    names = (FOLDER / "preload.txt").read_text().split()
    return ":".join(str(FOLDER / name) for name in names)


def has_torch() -> bool:
    return any(
        (pathlib.Path(folder) / "torch" / "lib" / "libtorch_cuda.so").exists() for folder in site_packages()
    )


def wheel_imports() -> dict[str, set[str]]:
    """Soname to names of the list of imports."""
    found: dict[str, set[str]] = {}
    for line in (ROOT / "tests" / "preload" / "wheel_imports.txt").read_text().splitlines():
        if line.startswith("["):
            names = found.setdefault(line.strip("[]"), set())
        elif line and not line.startswith("#"):
            names.add(line)
    return found


@needs_build
class TestWheels:
    @pytest.mark.skipif(not has_torch(), reason="no CUDA build of PyTorch is installed")
    def test_every_imported_name_is_exported(self, capsys: pytest.CaptureFixture[str]) -> None:
        status = exports.check(exports.simulated_libraries(MANIFESTS), site_packages())
        assert status == 0, capsys.readouterr().out

    @pytest.mark.skipif(not has_torch(), reason="no CUDA build of PyTorch is installed")
    def test_every_needed_library_is_replaced(self, capsys: pytest.CaptureFixture[str]) -> None:
        status = exports.needed(exports.simulated_libraries(MANIFESTS), site_packages())
        assert status == 0, capsys.readouterr().out

    def test_every_name_of_earlier_releases_is_exported(self) -> None:
        """Of the wheels that `script/accuracy releases` has looked at; they need not be installed here."""
        exported = {row.soname: row.names for row in exports.simulated_libraries(MANIFESTS)}
        wanted = wheel_imports()
        assert {"libcublas.so.12", "libcublas.so.13"} <= wanted.keys()
        missing = {
            soname: sorted(names - exported.get(soname, frozenset()))
            for soname, names in wanted.items()
            if soname not in exported or names - exported[soname]
        }
        assert not missing

    def test_a_missing_name_is_found(
        self, tmp_path: pathlib.Path, capsys: pytest.CaptureFixture[str]
    ) -> None:
        """The check itself can fail: a program that imports a name nobody exports."""
        source = tmp_path / "user.c"
        source.write_text("int ncclNotThere(void); int use(void) { return ncclNotThere(); }")
        (tmp_path / "libnccl.so.2").symlink_to(FOLDER / "sim-nccl.so")
        wheel = tmp_path / "wheel"
        wheel.mkdir()
        command = [
            "cc",
            "-shared",
            "-fPIC",
            "-o",
            wheel / "user.so",
            source,
            "-Wl,--no-as-needed",
            tmp_path / "libnccl.so.2",
        ]
        subprocess.run([*command, "-Wl,--allow-shlib-undefined"], check=True, capture_output=True)
        assert exports.check(exports.simulated_libraries(MANIFESTS), [str(wheel)]) == 1
        assert "ncclNotThere" in capsys.readouterr().out


@needs_build
class TestFiles:
    @each_library
    def test_soname_and_version_node(self, library: dict) -> None:
        found = elf.read(library["file"])
        assert found.soname == library["soname"]
        assert {symbol.version for symbol in found.exports()} <= {library["node"]}

    @each_library
    def test_exports_are_the_list(self, library: dict) -> None:
        found = {symbol.name for symbol in elf.read(library["file"]).exports()}
        found.discard(library["node"])  # the linker adds the node itself, as an absolute symbol
        assert found == set(library["hand_written"]) | set(library["stubs"])

    @each_library
    def test_needs_only_libc_and_the_core(self, library: dict) -> None:
        for soname in elf.read(library["file"]).needed:
            assert soname == "libvramtrace_sim_core.so" or ALLOWED_NEEDS.fullmatch(soname), soname

    @each_library
    def test_file_name(self, library: dict) -> None:
        """PyTorch looks for libcudart.so in its maps and then opens NVIDIA's libraries by path."""
        assert "libcudart.so" not in library["file"]

    @each_library
    def test_lists_are_well_formed(self, library: dict) -> None:
        for path in library["exports"]:
            assert export_list.read(path)

    def test_every_library_is_preloaded(self) -> None:
        listed = set((FOLDER / "preload.txt").read_text().split())
        assert {pathlib.Path(library["file"]).name for library in LIBRARIES.values()} <= listed


CALL_STUBS = """
import ctypes, json, sys
library = ctypes.CDLL(sys.argv[1])
results = {}
for name, kind in json.loads(sys.stdin.read()).items():
    function = getattr(library, name)
    function.restype = ctypes.c_void_p if kind == "null" else ctypes.c_uint64
    function.argtypes = [ctypes.c_void_p] * 6
    results[name] = [function(*[None] * 6) for _ in range(2)]
print(json.dumps(results))
"""


def call_stubs(library: dict, kinds: dict[str, str]) -> tuple[dict, str]:
    """Calls each stub twice in a child process; results by name, and what was said on stderr."""
    child = subprocess.run(
        [sys.executable, "-c", CALL_STUBS, library["file"]],
        input=json.dumps(kinds),
        capture_output=True,
        text=True,
        env={**os.environ, "LD_LIBRARY_PATH": str(FOLDER)},
    )
    assert child.returncode == 0, child.stderr[-2000:]
    return json.loads(child.stdout), child.stderr


def refusal_value(library: dict, tmp_path: pathlib.Path) -> int:
    """The number behind the library's not-supported status, as its header has it."""
    if library["refusal"].isdigit():
        return int(library["refusal"])
    source = tmp_path / "refusal.cpp"
    source.write_text(
        f"#include <cstdio>\n#include <{library['header']}>\n"
        f'int main() {{ std::printf("%d", (int){library["refusal"]}); }}\n'
    )
    include = [word for folder in library["include"].split(":") if folder for word in ("-isystem", folder)]
    subprocess.run(["c++", *include, "-o", tmp_path / "refusal", source], check=True, capture_output=True)
    return int(subprocess.run([tmp_path / "refusal"], check=True, capture_output=True, text=True).stdout)


@needs_build
class TestRefusals:
    @each_library
    def test_every_stub_refuses_and_names_itself_once(self, library: dict, tmp_path: pathlib.Path) -> None:
        refusing = {name: kind for name, kind in library["stubs"].items() if kind != "kernel"}
        if not refusing:
            pytest.skip("all of it is written by hand")
        results, said = call_stubs(library, refusing)
        status = refusal_value(library, tmp_path)
        assert status != 0, "0 is success in every library"
        for name, kind in refusing.items():
            expected = {"status": status, "library": status, "null": None, "zero": 0}
            if kind in expected:
                assert results[name] == [expected[kind]] * 2, name
        for name, kind in refusing.items():
            if kind != "library":
                assert len(re.findall(rf"\b{name} of {re.escape(library['soname'])}", said)) == 1, name
        if "library" in refusing.values():
            assert said.count(f"every function of {library['soname']}") == 1

    @each_library
    def test_kernels_need_a_handle(self, library: dict) -> None:
        kernels = {name: kind for name, kind in library["stubs"].items() if kind == "kernel"}
        if not kernels:
            pytest.skip("no function of this library is a kernel")
        results, said = call_stubs(library, kernels)
        assert all(value != 0 for values in results.values() for value in values)
        assert not said


@needs_build
def test_what_pytorch_computes_with_is_no_refusal() -> None:
    """A stub in their place would turn training into a chain of errors."""
    refusing = {"status", "library", "null", "zero", "void"}
    for target, names in {
        "vramtrace_sim_cublas12": [
            "cublasSgemm_v2",
            "cublasGemmEx",
        ],
        "vramtrace_sim_cublas13": [
            "cublasSgemm_v2",
            "cublasGemmEx",
            "cublasGemmStridedBatchedEx",
            "cublasSetWorkspace_v2",
        ],
        "vramtrace_sim_cublaslt13": ["cublasLtMatmul", "cublasLtMatmulAlgoGetHeuristic"],
        "vramtrace_sim_cudnn": ["cudnnBackendExecute", "cudnnRNNForward", "cudnnConvolutionForward"],
        "vramtrace_sim_nccl": ["ncclAllReduce", "ncclCommInitRankConfig"],
    }.items():
        for name in names:
            assert LIBRARIES[target]["stubs"].get(name) not in refusing, name


#: Prints whether cuBLASLt has an algorithm for types, by their numbers of cudaDataType: BF16, FP8, FP4.
ASK_CUBLASLT = """
import ctypes, sys
lt = ctypes.CDLL(sys.argv[1])
block = lambda: ctypes.create_string_buffer(512)
def offers(kind):
    layout, operation, preference, result, count = block(), block(), block(), block(), ctypes.c_int(-1)
    side = ctypes.c_uint64(64)
    assert lt.cublasLtMatrixLayoutInit_internal(layout, 112, kind, side, side, side) == 0
    assert lt.cublasLtMatmulDescInit_internal(operation, 256, 68, 0) == 0
    assert lt.cublasLtMatmulPreferenceInit_internal(preference, 96) == 0
    layouts = [layout] * 4
    status = lt.cublasLtMatmulAlgoGetHeuristic(
        None, operation, *layouts, preference, 1, result, ctypes.byref(count))
    return status == 0 and count.value == 1
print(offers(14), offers(28), offers(33))
"""


@needs_build
@pytest.mark.parametrize(
    ("gpu", "fp8", "fp4"), [("t4", False, False), ("h100-sxm", True, False), ("rtx5090", True, True)]
)
def test_cublaslt_offers_what_the_card_has(gpu: str, fp8: bool, fp4: bool) -> None:
    """FP8 from compute capability 8.9, FP4 from 10.0."""
    file = LIBRARIES["vramtrace_sim_cublaslt13"]["file"]
    environment = {**os.environ, "LD_LIBRARY_PATH": str(FOLDER), "VRAMTRACE_SIM_GPU": gpu}
    child = subprocess.run(
        [sys.executable, "-c", ASK_CUBLASLT, file], capture_output=True, text=True, env=environment
    )
    assert child.stdout.split() == ["True", str(fp8), str(fp4)], child.stderr


@pytest.mark.parametrize(
    ("path", "own"),
    [
        ("nvidia/cu13/lib/libcusolver.so.12", True),  # imports private names of cuBLAS, which nobody replaces
        ("nvidia/cudnn/lib/libcudnn_ops.so.9", True),
        ("triton/backends/nvidia/lib/cupti/libcupti.so.12", True),
        ("torch/lib/libtorch_cuda.so", False),
        ("bitsandbytes/libbitsandbytes_cuda132.so", False),
        ("torchvision/image_stable.so", False),
    ],
)
def test_nvidias_own_files_are_not_asked(path: str, own: bool) -> None:
    assert exports.is_nvidias_own(pathlib.PurePosixPath(path)) is own


def test_elf_reader_agrees_with_the_loader() -> None:
    """Against this process's own libc, which the dynamic linker has read."""
    with open("/proc/self/maps") as maps:
        path = next(line.split()[-1] for line in maps if re.search(r"/libc\.so\.6$|/libc-[\d.]+\.so$", line))
    libc = elf.read(path)
    assert libc.soname == "libc.so.6"
    names = {symbol.name for symbol in libc.exports()}
    assert {"malloc", "memcpy", "dlopen"} <= names | {"dlopen"}
    assert all(hasattr(ctypes.CDLL(None), name) for name in ("malloc", "printf"))


@pytest.mark.parametrize(
    "content", [b"", b"\x7fELF", b"not a library at all", b"\x7fELF\x01\x01" + bytes(200)]
)
def test_elf_reader_refuses_other_files(content: bytes, tmp_path: pathlib.Path) -> None:
    path = tmp_path / "file.so"
    path.write_bytes(content)
    with pytest.raises(elf.NotElf):
        elf.read(path)


@pytest.mark.parametrize(
    ("text", "complaint"),
    [("b\na\n", "not sorted"), ("a\na\n", "twice"), ("a nonsense\n", "kind"), ("a void extra\n", "kind")],
)
def test_export_lists_are_checked(text: str, complaint: str, tmp_path: pathlib.Path) -> None:
    path = tmp_path / "exports.txt"
    path.write_text(text)
    with pytest.raises(export_list.ListError, match=complaint):
        export_list.read(path)
