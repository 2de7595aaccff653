# SPDX-License-Identifier: GPL-3.0-or-later
"""The names that debugging leaves in code, each with what a call of it does. Data for ``scan``.

A name is what is called, with imports and aliases resolved (``np.save`` is ``numpy.save``). One that begins with a dot is a method,
whatever it is called on. A name stands for all that is below it: ``pdb`` is ``pdb.set_trace`` too.
"""

from __future__ import annotations

DUMP = "tensor_dump"
BREAKPOINT = "breakpoint"
DEBUGGER = "debugger"
TEMPORARY = "temporary_file"
SYNCHRONISE = "forced_synchronisation"
EARLY_END = "early_return"
SLEEP = "sleep"
PROFILER = "profiler"
OUTPUT = "output"
WRITE = "file_write"
NESTED = "hidden_code"
EXIT = "program_exit"

SAYS = {
    DUMP: "writes data to disk",
    BREAKPOINT: "stops for a debugger",
    TEMPORARY: "uses a temporary file or folder",
    SYNCHRONISE: "makes the GPU and the program wait for each other",
    EARLY_END: "leaves the function early",
    SLEEP: "waits",
    PROFILER: "measures or traces",
    OUTPUT: "prints",
    WRITE: "writes a file",
    NESTED: "runs code from a text",
    EXIT: "ends the program",
}

# Ordinary code does these too: they are told only where they are known to be added.
ORDINARY = frozenset({OUTPUT, WRITE, NESTED, EXIT})

CALLS = {
    "torch.save": DUMP,
    "torch.jit.save": DUMP,
    "torch.export.save": DUMP,
    "torch.distributed.checkpoint.save": DUMP,
    "torchvision.utils.save_image": DUMP,
    "torchvision.io.write_png": DUMP,
    "torchaudio.save": DUMP,
    "numpy.save": DUMP,
    "numpy.savez": DUMP,
    "numpy.savez_compressed": DUMP,
    "numpy.savetxt": DUMP,
    "cupy.save": DUMP,
    "cupy.savez": DUMP,
    "pickle.dump": DUMP,
    "cloudpickle.dump": DUMP,
    "dill.dump": DUMP,
    "joblib.dump": DUMP,
    "marshal.dump": DUMP,
    "json.dump": DUMP,
    "safetensors.torch.save_file": DUMP,
    "safetensors.numpy.save_file": DUMP,
    "safetensors.torch.save_model": DUMP,
    "scipy.io.savemat": DUMP,
    "scipy.io.wavfile.write": DUMP,
    "h5py.File": DUMP,
    "torch.utils.tensorboard.SummaryWriter": DUMP,
    ".tofile": DUMP,
    ".to_pickle": DUMP,
    ".to_csv": DUMP,
    ".to_parquet": DUMP,
    "breakpoint": BREAKPOINT,
    "sys.breakpointhook": BREAKPOINT,
    "torch.distributed.breakpoint": BREAKPOINT,
    "code.interact": BREAKPOINT,
    "code.InteractiveConsole": BREAKPOINT,
    "IPython.embed": BREAKPOINT,
    "IPython.start_ipython": BREAKPOINT,
    ".set_trace": BREAKPOINT,
    "pdb": BREAKPOINT,
    "ipdb": BREAKPOINT,
    "pudb": BREAKPOINT,
    "rpdb": BREAKPOINT,
    "web_pdb": BREAKPOINT,
    "remote_pdb": BREAKPOINT,
    "debugpy": BREAKPOINT,
    "ptvsd": BREAKPOINT,
    "pydevd": BREAKPOINT,
    "pydevd_pycharm": BREAKPOINT,
    "tempfile": TEMPORARY,
    "torch.cuda.synchronize": SYNCHRONISE,
    "torch.accelerator.synchronize": SYNCHRONISE,
    "torch.cuda.set_sync_debug_mode": SYNCHRONISE,
    "torch.autograd.set_detect_anomaly": SYNCHRONISE,
    "torch.autograd.detect_anomaly": SYNCHRONISE,
    ".synchronize": SYNCHRONISE,
    ".cudaDeviceSynchronize": SYNCHRONISE,
    ".cuCtxSynchronize": SYNCHRONISE,
    "sys.exit": EXIT,
    "os._exit": EXIT,
    "os.abort": EXIT,
    "exit": EXIT,
    "quit": EXIT,
    "time.sleep": SLEEP,
    "asyncio.sleep": SLEEP,
    "torch.cuda._sleep": SLEEP,
    "gevent.sleep": SLEEP,
    "torch.profiler": PROFILER,
    "torch.autograd.profiler": PROFILER,
    "torch.cuda.profiler": PROFILER,
    "torch.cuda.nvtx": PROFILER,
    "torch.cuda.memory._record_memory_history": PROFILER,
    "torch.cuda.memory._dump_snapshot": PROFILER,
    "nvtx": PROFILER,
    "cProfile": PROFILER,
    "profile": PROFILER,
    "pstats": PROFILER,
    "pyinstrument": PROFILER,
    "line_profiler": PROFILER,
    "memory_profiler": PROFILER,
    "viztracer": PROFILER,
    "yappi": PROFILER,
    "scalene": PROFILER,
    "tracemalloc": PROFILER,
    "sys.setprofile": PROFILER,
    "sys.settrace": PROFILER,
    "threading.settrace": PROFILER,
    "threading.setprofile": PROFILER,
    ".cudaProfilerStart": PROFILER,
    "print": OUTPUT,
    "pprint.pprint": OUTPUT,
    "rich.print": OUTPUT,
    ".write_text": WRITE,
    ".write_bytes": WRITE,
    "exec": NESTED,
    "eval": NESTED,
}
# Modules that are imported for nothing else.
DEBUGGERS = ("pdb", "ipdb", "pudb", "rpdb", "web_pdb", "remote_pdb", "debugpy", "ptvsd", "pydevd", "pydevd_pycharm")
PROFILERS = ("cProfile", "pyinstrument", "line_profiler", "memory_profiler", "viztracer", "yappi")
# What a file is opened by; its mode says whether it is written.
OPENS = frozenset({"open", "io.open", "gzip.open", "bz2.open", "lzma.open", "os.fdopen", ".open"})
# Variables that turn debugging on.
VARIABLES = {
    "CUDA_LAUNCH_BLOCKING": SYNCHRONISE,
    "HIP_LAUNCH_BLOCKING": SYNCHRONISE,
    "TORCH_NCCL_BLOCKING_WAIT": SYNCHRONISE,
    "NCCL_BLOCKING_WAIT": SYNCHRONISE,
    "PYTORCH_NO_CUDA_MEMORY_CACHING": SYNCHRONISE,
    "PYTHONBREAKPOINT": BREAKPOINT,
    "PYTHONINSPECT": BREAKPOINT,
    "PYTHONTRACEMALLOC": PROFILER,
    "PYTHONPROFILEIMPORTTIME": PROFILER,
}
TEMPORARY_FOLDERS = tuple(f"/{name}" for name in ("tmp", "var/tmp", "dev/shm"))
# What everybody calls these where an import is not in the same file.
CUSTOMARY = {"np": "numpy", "pd": "pandas", "cp": "cupy"}
