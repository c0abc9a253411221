// Package proc measures processes: processor time, user and system, memory and writes. It is for benchmarks.
package proc

import (
	"fmt"
	"os"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// Own is the time of this process.
func Own() time.Duration {
	var r syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &r); err != nil {
		return 0
	}
	return time.Duration(r.Utime.Nano() + r.Stime.Nano())
}

// Of is the time of a process's threads; false when there is no such process, or no /proc.
// /proc/pid/stat counts it in ticks, which are a hundredth of a second, and schedstat leaves
// out threads that have ended.
func Of(pid int) (time.Duration, bool) {
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return 0, false
	}
	_, after, ok := strings.Cut(string(b), ") ")
	f := strings.Fields(after)
	if !ok || len(f) < 13 {
		return 0, false
	}
	user, err1 := strconv.ParseInt(f[11], 10, 64)
	system, err2 := strconv.ParseInt(f[12], 10, 64)
	return time.Duration(user+system) * 10 * time.Millisecond, err1 == nil && err2 == nil
}

// OwnAnd is the time of this process and of a child; of this one alone when child is 0.
func OwnAnd(child int) time.Duration {
	d := Own()
	if child != 0 {
		of, _ := Of(child)
		d += of
	}
	return d
}

// Written is how many bytes a process has made the kernel write to disks, those of files that are
// removed before among them; 0 without /proc.
func Written(pid int) int64 {
	b, _ := os.ReadFile(fmt.Sprintf("/proc/%d/io", pid))
	return field(b, "write_bytes: ")
}

// PSS is the resident memory of a process in bytes; of pages that it shares, its share.
func PSS(pid int) int64 {
	b, _ := os.ReadFile(fmt.Sprintf("/proc/%d/smaps_rollup", pid))
	return field(b, "Pss:") << 10
}

// field is the number in the line that begins with a name; 0 when there is none.
func field(b []byte, name string) int64 {
	for line := range strings.Lines(string(b)) {
		if rest, ok := strings.CutPrefix(line, name); ok {
			n, _ := strconv.ParseInt(strings.TrimSpace(strings.TrimSuffix(strings.TrimSpace(rest), "kB")), 10, 64)
			return n
		}
	}
	return 0
}
