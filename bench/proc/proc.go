// Package proc measures the processor time of processes, user and system. It is for benchmarks.
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
