package app

import (
	"context"
	"runtime"
	"runtime/debug"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// TestMemoryLimitFollowsWhatLives: a process that needs more than its limit gets more, and
// returns it.
func TestMemoryLimitFollowsWhatLives(t *testing.T) {
	before := debug.SetMemoryLimit(-1)
	defer debug.SetMemoryLimit(before)
	t.Setenv("GOGC", "")
	t.Setenv("GOMEMLIMIT", "")
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		BoundMemory(ctx)
		if got := debug.SetMemoryLimit(-1); got != room {
			t.Fatalf("the limit is %d MiB at first", got>>20)
		}
		const size = 4 * room
		much := make([]byte, size)
		runtime.GC()
		time.Sleep(time.Second)
		if got := debug.SetMemoryLimit(-1); got < size+size/3 {
			t.Errorf("the limit is %d MiB with %d MiB alive", got>>20, size>>20)
		}
		runtime.KeepAlive(much)
		much = nil
		runtime.GC()
		time.Sleep(time.Second)
		if got := debug.SetMemoryLimit(-1); got < room || got > 2*room {
			t.Errorf("the limit is %d MiB after that", got>>20)
		}
	})
}

// TestMemoryLimitLeavesRoom: the live heap has a third of it to spare, however much the
// stacks and the runtime's own tables take: they count in the limit, and with the streams of
// a thousand clients they took all the room there was.
func TestMemoryLimitLeavesRoom(t *testing.T) {
	before := debug.SetMemoryLimit(-1)
	defer debug.SetMemoryLimit(before)
	t.Setenv("GOGC", "")
	t.Setenv("GOMEMLIMIT", "")
	much := make([]byte, 80<<20)
	var up, down sync.WaitGroup
	stay := make(chan struct{})
	for range 2000 {
		up.Add(1)
		down.Go(func() { deep(100, up.Done, stay) })
	}
	up.Wait()
	runtime.GC()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	BoundMemory(ctx)
	var m runtime.MemStats
	for end := time.Now().Add(20 * time.Second); ; time.Sleep(10 * time.Millisecond) {
		runtime.ReadMemStats(&m)
		if limit := debug.SetMemoryLimit(-1); limit >= int64(len(much)+room)+int64(m.StackInuse) {
			break
		} else if time.Now().After(end) {
			t.Fatalf("the limit is %d MiB with %d alive and %d of stacks", limit>>20, len(much)>>20, m.StackInuse>>20)
		}
	}
	close(stay)
	down.Wait()
	runtime.KeepAlive(much)
}

// deep waits far down its stack.
func deep(n int, there func(), stay chan struct{}) byte {
	var frame [256]byte
	if n > 0 {
		return deep(n-1, there, stay) + frame[n]
	}
	there()
	<-stay
	return frame[0]
}

// TestMemoryIsLeftToTheEnvironment: an operator who sets the runtime's own variables is
// obeyed.
func TestMemoryIsLeftToTheEnvironment(t *testing.T) {
	before := debug.SetMemoryLimit(-1)
	for _, key := range []string{"GOGC", "GOMEMLIMIT"} {
		t.Run(key, func(t *testing.T) {
			t.Setenv("GOGC", "")
			t.Setenv("GOMEMLIMIT", "")
			t.Setenv(key, "200")
			BoundMemory(t.Context())
			if got := debug.SetMemoryLimit(-1); got != before {
				t.Errorf("the limit is %d", got)
			}
		})
	}
}
