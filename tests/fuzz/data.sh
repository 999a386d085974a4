#!/bin/bash
# Uses clang's libFuzzer to find files of data that break their readers, under the address sanitizer: arrays of numpy,
# zip archives of these, and packed shards.
#   data.sh BUILD_FOLDER [SECONDS]
# The default is 180 seconds. BUILD_FOLDER has a build of the library plexaura_core.
# BUILD_FOLDER/fuzz gets the failures, and the inputs from which the next run continues. Returns 77 (skipped) without clang 16.
set -euo pipefail
root=$(cd "$(dirname "$0")/../.." && pwd)
build=$(realpath "${1:?a build folder}") seconds=${2:-180} fuzzer=data
. "$root/tests/fuzz/common.sh"
require_fuzzer

cd "$root"
compile_sources tests/fuzz/data_fuzzer.cpp training/data/arrays/*.cpp training/data/shards/shard_index.cpp \
  training/data/{dataset,sample_source}.cpp training/files/{file,shortage}.cpp
# The first inputs: an array, an archive with a stored and a deflated member, and an index.
python3 - "$folder/inputs-$fuzzer" << 'END'
import json, pathlib, struct, sys, zipfile, zlib

inputs = pathlib.Path(sys.argv[1])
header = b"{'descr': '<i2', 'fortran_order': False, 'shape': (2, 2), }\n"
array = b"\x93NUMPY\x01\0" + struct.pack("<H", len(header)) + header + bytes(8)
(inputs / "array").write_bytes(array)
for kind in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
    with zipfile.ZipFile(inputs / f"archive-{kind}", "w", kind) as archive:
        archive.writestr("x.npy", array)
text = json.dumps({"records": "sample", "dtype": "uint8", "shape": [2], "classes": ["a"], "columns": [], "targets": [], "samples": 1,
                   "shards": [{"bytes": 2, "identity": "0" * 16}]}).encode()
index = b"PLXINDEX" + struct.pack("<II", 1, len(text)) + text + struct.pack("<QIIII", 0, 2, 0, 0, 0)
(inputs / "index").write_bytes(index + struct.pack("<I", zlib.crc32(index)))
END
run_fuzzer "$seconds" "-lz" -rss_limit_mb=2000 -timeout=20
