package app

import (
	"context"
	"runtime"
	"runtime/debug"
	"testing"
	"testing/synctest"
	"time"

	"github.com/earshot-dev/earshot/core/config"
)

// TestMemoryLimitFollowsWhatLives says that a process that needs more than its limit
// gets more, and gives it back.
func TestMemoryLimitFollowsWhatLives(t *testing.T) {
	before := debug.SetMemoryLimit(-1)
	defer debug.SetMemoryLimit(before)
	t.Setenv("GOGC", "")
	t.Setenv("GOMEMLIMIT", "")
	c := config.Default()
	c.Delivery.MaxInFlight = 16 << 20
	least := int64(room + 32<<20)
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		BoundMemory(ctx, c)
		if got := debug.SetMemoryLimit(-1); got != least {
			t.Fatalf("the limit is %d MiB at first", got>>20)
		}
		much := make([]byte, 2*least)
		runtime.GC()
		time.Sleep(time.Second)
		if got := debug.SetMemoryLimit(-1); got < 2*least+2*least/3 {
			t.Errorf("the limit is %d MiB with %d MiB alive", got>>20, 2*least>>20)
		}
		runtime.KeepAlive(much)
		much = nil
		runtime.GC()
		time.Sleep(time.Second)
		if got := debug.SetMemoryLimit(-1); got != least {
			t.Errorf("the limit is %d MiB after that", got>>20)
		}
	})
}

// TestMemoryIsLeftToTheEnvironment says that who sets the runtime's own variables is
// obeyed.
func TestMemoryIsLeftToTheEnvironment(t *testing.T) {
	before := debug.SetMemoryLimit(-1)
	for _, key := range []string{"GOGC", "GOMEMLIMIT"} {
		t.Run(key, func(t *testing.T) {
			t.Setenv("GOGC", "")
			t.Setenv("GOMEMLIMIT", "")
			t.Setenv(key, "200")
			BoundMemory(t.Context(), config.Default())
			if got := debug.SetMemoryLimit(-1); got != before {
				t.Errorf("the limit is %d", got)
			}
		})
	}
}
