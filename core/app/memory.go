package app

import (
	"context"
	"os"
	"runtime/debug"
	"runtime/metrics"
	"time"

	"github.com/earshot-dev/earshot/core/pages"
)

// room is how many bytes the heap may grow by between two collections. Of a backlog of 500 MB, with 60 to 80 MiB that
// live, a room of a third of them took 1.2 times the processor time of sidecar and decoder, and 25 MiB less at the sidecar's peak.
const room = 64 << 20

// BoundMemory bounds the growth of the heap between two collections: to room, or to a third of the live heap
// where that is more, as with ten thousand open sessions, instead of doubling. It returns at once and
// goes on until ctx ends; GOGC or GOMEMLIMIT in the environment have it do nothing.
func BoundMemory(ctx context.Context) {
	if os.Getenv("GOGC") != "" || os.Getenv("GOMEMLIMIT") != "" {
		return
	}
	limit := memoryLimit(0, 0)
	debug.SetMemoryLimit(limit)
	go func() {
		// The limit is one on all that the runtime holds. Memory that is not heap, or is lost between
		// objects of it, is not there for the taking: with a thousand streams it was more than
		// a third of the live heap.
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
		for {
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
			if next := memoryLimit(sum(live), sum(beside)); next != limit {
				limit = next
				debug.SetMemoryLimit(limit)
			}
		}
	}()
}

// idleTicks is after how many seconds without a collection the process returns the memory that it does not
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

// memoryLimit is the limit with so many bytes alive, and so many beside them.
func memoryLimit(live, beside int64) int64 { return live + max(room, live/3) + beside }

func sum(samples []metrics.Sample) (n int64) {
	for _, s := range samples {
		n += int64(s.Value.Uint64())
	}
	return n
}
