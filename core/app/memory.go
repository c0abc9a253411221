package app

import (
	"context"
	"os"
	"runtime/debug"
	"runtime/metrics"
	"time"

	"github.com/earshot-dev/earshot/core/config"
	"github.com/earshot-dev/earshot/core/pages"
)

// headroom is the memory that a sidecar takes beside the bytes in flight, which it holds
// twice: as frames, and as the messages and spans that were made of them.
const headroom = 58 << 20

// BoundMemory has the garbage collector work when this process has come to a size,
// and not with every so many percent that its heap has grown: a heap that is small
// between two batches need not be kept small, and while one is full there is
// nothing to gain. The size follows max_in_flight, and the live heap where that is
// more, as with ten thousand open sessions. It returns at once and goes on until
// ctx ends; GOGC or GOMEMLIMIT in the environment have it do nothing.
func BoundMemory(ctx context.Context, c *config.Config) {
	if os.Getenv("GOGC") != "" || os.Getenv("GOMEMLIMIT") != "" {
		return
	}
	least := headroom + 2*int64(c.Delivery.MaxInFlight)
	debug.SetMemoryLimit(least)
	go func() {
		// The limit is one on all that the runtime holds. Memory that is not heap, or is lost between
		// objects of it, is not there for the taking: with a thousand streams it was more than
		// the third.
		live, beside := []metrics.Sample{{Name: "/gc/heap/live:bytes"}}, []metrics.Sample{
			{Name: "/memory/classes/heap/stacks:bytes"}, {Name: "/memory/classes/heap/unused:bytes"},
			{Name: "/memory/classes/metadata/mspan/inuse:bytes"}, {Name: "/memory/classes/metadata/other:bytes"},
		}
		// Without a collection there is nothing new, and while there was none it looks seldom, and more so after
		// it has returned memory.
		const working, idling, resting = 100 * time.Millisecond, time.Second, 3 * time.Second
		cycles, seen, idle, every := []metrics.Sample{{Name: "/gc/cycles/total:gc-cycles"}}, int64(-1), 0, working
		tick := time.NewTicker(every)
		defer tick.Stop()
		for limit := least; ; {
			select {
			case <-ctx.Done():
				return
			case <-tick.C:
			}
			metrics.Read(cycles)
			next := idling
			if n := sum(cycles); n != seen {
				next, seen, idle = working, n, 0
			} else if idle++; idle == idleTicks {
				returnMemory(sum(live))
				metrics.Read(cycles)
				seen = sum(cycles)
			} else if idle > idleTicks {
				next = resting
			}
			if next != every {
				every = next
				tick.Reset(every)
			}
			metrics.Read(live)
			metrics.Read(beside)
			if next := memoryLimit(least, sum(live), sum(beside)); next != limit {
				limit = next
				debug.SetMemoryLimit(limit)
			}
		}
	}()
}

// idleTicks is after how many seconds without a collection the process returns what it does not
// need: after a backlog the runtime would hold more than it needs until the next one.
const idleTicks = 10

// returnMemory returns memory to the system: the pages of the program, and of the heap if there are many, because to
// look for those is a collection.
func returnMemory(live int64) {
	if self, err := os.Executable(); err == nil {
		_, _ = pages.Release(self) // it costs memory alone
	}
	const much = 24 << 20
	held := []metrics.Sample{{Name: "/memory/classes/heap/objects:bytes"}, {Name: "/memory/classes/heap/unused:bytes"}, {Name: "/memory/classes/heap/free:bytes"}}
	metrics.Read(held)
	if sum(held)-live > much {
		debug.FreeOSMemory()
	}
}

// memoryLimit is the limit with so many bytes alive, and so many beside them: a third
// more than live, so that the live heap does not make the collector work without end.
func memoryLimit(least, live, beside int64) int64 { return max(least, live+live/3+beside) }

func sum(samples []metrics.Sample) (n int64) {
	for _, s := range samples {
		n += int64(s.Value.Uint64())
	}
	return n
}
