"""The system calls that a candidate's code may make: one list, rendered for Docker and for bubblewrap.

An allow-list: Python, numpy and the packages of the runtime run under it (the conformance suite shows that), and
everything else fails with EPERM: tracing and reading other processes, keys, bpf, perf, io_uring, userfaultfd, memory
files, namespaces, mounts, file handles, modules, clocks. Sockets are AF_UNIX only: a network namespace does not cover
AF_VSOCK. Calls newer than this list fail with ENOSYS, as does clone3 (its flags cannot be inspected), so that the C
library falls back. Other architectures' calls end the process; the x32 calls fail.
"""

from __future__ import annotations

import errno
import os
import platform
import struct
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

AF_UNIX = 1
ADDR_NO_RANDOMIZE = 0x0040000
"""The one personality that may be asked for: the same addresses in every run, so that nobody draws lots from them."""
NEW_NAMESPACES = 0x7E020000
"""CLONE_NEWNS, NEWCGROUP, NEWUTS, NEWIPC, NEWUSER, NEWPID and NEWNET."""

_ALLOWED = """
    read:0:63 write:1:64 readv:19:65 writev:20:66 pread64:17:67 pwrite64:18:68 preadv:295:69 pwritev:296:70
    preadv2:327:286 pwritev2:328:287 open:2:-1 openat:257:56 openat2:437:437 creat:85:-1 close:3:57
    close_range:436:436 stat:4:-1 fstat:5:80 lstat:6:-1 newfstatat:262:79 statx:332:291 statfs:137:43
    fstatfs:138:44 access:21:-1 faccessat:269:48 faccessat2:439:439 lseek:8:62 getdents:78:-1 getdents64:217:61
    getcwd:79:17 chdir:80:49 fchdir:81:50 readlink:89:-1 readlinkat:267:78 rename:82:-1 renameat:264:38
    renameat2:316:276 mkdir:83:-1 mkdirat:258:34 rmdir:84:-1 link:86:-1 linkat:265:37 unlink:87:-1
    unlinkat:263:35 symlink:88:-1 symlinkat:266:36 chmod:90:-1 fchmod:91:52 fchmodat:268:53 umask:95:166
    truncate:76:45 ftruncate:77:46 fallocate:285:47 fadvise64:221:223 fsync:74:82 fdatasync:75:83 flock:73:32
    utime:132:-1 utimes:235:-1 futimesat:261:-1 utimensat:280:88 sendfile:40:71 copy_file_range:326:285
    splice:275:76 tee:276:77 dup:32:23 dup2:33:-1 dup3:292:24 fcntl:72:25 ioctl:16:29 pipe:22:-1 pipe2:293:59
    poll:7:-1 ppoll:271:73 select:23:-1 pselect6:270:72 epoll_create:213:-1 epoll_create1:291:20
    epoll_ctl:233:21 epoll_wait:232:-1 epoll_pwait:281:22 epoll_pwait2:441:441 eventfd:284:-1 eventfd2:290:19
    timerfd_create:283:85 timerfd_settime:286:86 timerfd_gettime:287:87 signalfd:282:-1 signalfd4:289:74
    mmap:9:222 munmap:11:215 mprotect:10:226 mremap:25:216 madvise:28:233 mincore:27:232 msync:26:227
    brk:12:214 membarrier:324:283 rt_sigaction:13:134 rt_sigprocmask:14:135 rt_sigreturn:15:139
    rt_sigpending:127:136 rt_sigtimedwait:128:137 rt_sigsuspend:130:133 rt_sigqueueinfo:129:138
    sigaltstack:131:132 restart_syscall:219:128 pause:34:-1 alarm:37:-1 getitimer:36:102 setitimer:38:103
    nanosleep:35:101 clock_nanosleep:230:115 clock_gettime:228:113 clock_getres:229:114 gettimeofday:96:169
    time:201:-1 times:100:153 timer_create:222:107 timer_settime:223:110 timer_gettime:224:108
    timer_getoverrun:225:109 timer_delete:226:111 getpid:39:172 getppid:110:173 gettid:186:178 getpgid:121:155
    getpgrp:111:-1 getsid:124:156 setsid:112:157 setpgid:109:154 getuid:102:174 geteuid:107:175 getgid:104:176
    getegid:108:177 getresuid:118:148 getresgid:120:150 getgroups:115:158 capget:125:90 kill:62:129
    tkill:200:130 tgkill:234:131 fork:57:-1 vfork:58:-1 execve:59:221 execveat:322:281 wait4:61:260
    waitid:247:95 exit:60:93 exit_group:231:94 prctl:157:167 arch_prctl:158:-1 set_tid_address:218:96
    set_robust_list:273:99 get_robust_list:274:100 futex:202:98 futex_waitv:449:449 rseq:334:293
    getrandom:318:278 getcpu:309:168 uname:63:160 sysinfo:99:179 getrusage:98:165 getrlimit:97:163
    setrlimit:160:164 prlimit64:302:261 getpriority:140:141 setpriority:141:140 sched_yield:24:124
    sched_getaffinity:204:123 sched_setaffinity:203:122 sched_getparam:143:121 sched_getscheduler:145:120
    sched_get_priority_max:146:125 sched_get_priority_min:147:126 sched_rr_get_interval:148:127 bind:49:200
    listen:50:201 accept:43:202 accept4:288:242 connect:42:203 sendto:44:206 recvfrom:45:207 sendmsg:46:211
    recvmsg:47:212 sendmmsg:307:269 recvmmsg:299:243 shutdown:48:210 getsockname:51:204 getpeername:52:205
    getsockopt:55:209 setsockopt:54:208
"""
"""NAME:NUMBER on x86_64:NUMBER on aarch64, -1 where the architecture has no such call."""

_INSPECTED = """
    socket:41:198 socketpair:53:199 clone:56:220 clone3:435:435
"""

DENIED = """
    ptrace:101:117 process_vm_readv:310:270 process_vm_writev:311:271 memfd_create:319:279 memfd_secret:447:447
    keyctl:250:219 add_key:248:217 request_key:249:218 bpf:321:280 perf_event_open:298:241 userfaultfd:323:282
    io_uring_setup:425:425 io_uring_enter:426:426 io_uring_register:427:427 unshare:272:97 setns:308:268
    mount:165:40 umount2:166:39 pivot_root:155:41 move_mount:429:429 open_tree:428:428 fsopen:430:430
    fsmount:432:432 open_by_handle_at:304:265 name_to_handle_at:303:264 chroot:161:51 swapon:167:224
    reboot:169:142 init_module:175:105 finit_module:313:273 kexec_load:246:104 personality:135:92
    pidfd_getfd:438:438 kcmp:312:272 mknod:133:-1 mknodat:259:33 quotactl:179:60 syslog:103:116 acct:163:89
    setuid:105:146
"""
"""Examples of what is not allowed, for the probes and tests; the filter needs no such list."""


@dataclass(frozen=True, slots=True)
class Architecture:
    """``audit`` is the kernel's token for it, ``column`` where its numbers stand, ``newest`` the last call known."""

    docker: str
    audit: int
    column: int
    newest: int


ARCHITECTURES: Mapping[str, Architecture] = {
    "x86_64": Architecture("SCMP_ARCH_X86_64", 0xC000003E, 0, 450),
    "aarch64": Architecture("SCMP_ARCH_AARCH64", 0xC00000B7, 1, 450),
}
X32 = 0x40000000


def numbers(table: str, column: int) -> dict[str, int]:
    """System call numbers of one architecture by name."""
    rows = [entry.split(":") for entry in table.split()]
    return {row[0]: int(row[1 + column]) for row in rows if int(row[1 + column]) >= 0}


# ---------------------------------------------------------------- Docker


def docker_profile() -> dict[str, Any]:
    """The list in the form that Docker's ``security_opt`` seccomp takes."""
    allowed = sorted(entry.split(":")[0] for entry in _ALLOWED.split())
    unix = [{"index": 0, "value": AF_UNIX, "op": "SCMP_CMP_EQ"}]
    fixed = [{"index": 0, "value": ADDR_NO_RANDOMIZE, "op": "SCMP_CMP_EQ"}]
    plain = [{"index": 0, "value": NEW_NAMESPACES, "valueTwo": 0, "op": "SCMP_CMP_MASKED_EQ"}]
    return {
        "defaultAction": "SCMP_ACT_ERRNO",
        "archMap": [{"architecture": arch.docker, "subArchitectures": []} for arch in ARCHITECTURES.values()],
        "syscalls": [
            {"names": allowed, "action": "SCMP_ACT_ALLOW"},
            {"names": ["socket", "socketpair"], "action": "SCMP_ACT_ALLOW", "args": unix},
            {"names": ["personality"], "action": "SCMP_ACT_ALLOW", "args": fixed},
            {"names": ["clone"], "action": "SCMP_ACT_ALLOW", "args": plain},
            {"names": ["clone3"], "action": "SCMP_ACT_ERRNO", "errnoRet": errno.ENOSYS},
        ],
    }


# ---------------------------------------------------------------- BPF

_LOAD, _JUMP_EQUAL, _JUMP_AT_LEAST, _JUMP_ANY_BIT, _RETURN = 0x20, 0x15, 0x35, 0x45, 0x06
_NUMBER_AT, _ARCHITECTURE_AT, _FIRST_ARGUMENT_AT = 0, 4, 16
"""Offsets within the kernel's ``struct seccomp_data`` (the argument's low half: both machines are little-endian)."""
_ALLOW, _ERROR, _KILL = 0x7FFF0000, 0x00050000, 0x80000000


def _step(code: int, value: int, if_true: int = 0, if_false: int = 0) -> bytes:
    return struct.pack("<HBBI", code, if_true, if_false, value)


def bpf_program(machine: str | None = None) -> bytes:
    """The list as a classic BPF program, for bubblewrap's ``--seccomp``. KeyError for an unknown machine."""
    arch = ARCHITECTURES[machine or platform.machine()]
    refuse, missing, allow = (_step(_RETURN, v) for v in (_ERROR | errno.EPERM, _ERROR | errno.ENOSYS, _ALLOW))
    inspected = numbers(_INSPECTED, arch.column)
    steps = [_step(_LOAD, _ARCHITECTURE_AT), _step(_JUMP_EQUAL, arch.audit, 1, 0), _step(_RETURN, _KILL)]
    steps += [_step(_LOAD, _NUMBER_AT)]
    steps += [_step(_JUMP_AT_LEAST, X32, 0, 1), refuse]
    steps += [_step(_JUMP_AT_LEAST, arch.newest + 1, 0, 1), missing]
    steps += [_step(_JUMP_EQUAL, inspected["clone3"], 0, 1), missing]
    for name in ("socket", "socketpair"):
        steps += [_step(_JUMP_EQUAL, inspected[name], 0, 4), _step(_LOAD, _FIRST_ARGUMENT_AT)]
        steps += [_step(_JUMP_EQUAL, AF_UNIX, 1, 0), refuse, allow]
    steps += [_step(_JUMP_EQUAL, inspected["clone"], 0, 4), _step(_LOAD, _FIRST_ARGUMENT_AT)]
    steps += [_step(_JUMP_ANY_BIT, NEW_NAMESPACES, 0, 1), refuse, allow]
    for number in sorted(numbers(_ALLOWED, arch.column).values()):
        steps += [_step(_JUMP_EQUAL, number, 0, 1), allow]
    return b"".join([*steps, refuse])


def program_fd() -> int:
    """A fresh descriptor from which the program can be read once; the caller closes it."""
    reading, writing = os.pipe()
    with os.fdopen(writing, "wb") as file:
        file.write(bpf_program())
    return reading
