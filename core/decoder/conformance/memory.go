package conformance

import (
	"bytes"
	"context"
	"fmt"
	"runtime"
	"strings"

	"github.com/earshot-dev/earshot/core/frame"
)

const (
	repetitions = 10000
	// slack is the growth of the heap that the process itself may cause.
	slack = 256 << 10
)

// memory is C13. After 10,000 repetitions of a complete case, each with ids of its own,
// the decoder retains no more than after 5,000: any state that it keeps of completed
// messages must have reached its limit by then.
func memory(ctx context.Context, r *runner) error {
	best, names, err := r.chooseRepeated(ctx)
	if err != nil {
		return err
	}
	_, local := r.suite.Subject.(*Local)
	if !local && !r.suite.Subject.Describe().Snapshots {
		return skipped("the decoder has no snapshots, and its memory is not that of this process")
	}
	pieces := make([][][]byte, len(best.Frames))
	for i, f := range best.Frames {
		pieces[i] = splitAtIDs(f.Data, names)
	}
	stream, err := r.open(ctx, r.suite.Subject, best.Stream, nil)
	if err != nil {
		return err
	}
	defer stream.Close()
	var half, full footprint
	var frames []frame.Frame
	for n := 1; n <= repetitions; n++ {
		for i, f := range best.Frames {
			f.Data = bytes.Join(pieces[i], fmt.Appendf(nil, "-%d\"", n))
			frames = append(frames, f)
		}
		if len(frames) < 256 && n%(repetitions/2) != 0 {
			continue
		}
		if _, err := r.decode(ctx, stream, Batch{Frames: frames}, 0); err != nil {
			return err
		}
		frames = frames[:0]
		switch n {
		case repetitions / 2:
			half, err = r.measure(ctx, stream, local)
		case repetitions:
			full, err = r.measure(ctx, stream, local)
		}
		if err != nil {
			return err
		}
	}
	runtime.KeepAlive(stream)
	switch {
	case full.snapshot > half.snapshot+half.snapshot/10+1<<10:
		return violates("D11", "the snapshot grows with completed messages: %d bytes after %d repetitions (case %s), %d after %d",
			half.snapshot, repetitions/2, best.Name, full.snapshot, repetitions)
	case full.heap > half.heap+slack:
		return violates("D11", "memory grows with completed messages: by %d bytes between repetition %d and %d (case %s)",
			full.heap-half.heap, repetitions/2, repetitions, best.Name)
	}
	return nil
}

type footprint struct {
	snapshot int
	heap     uint64
}

func (r *runner) measure(ctx context.Context, s Stream, local bool) (f footprint, err error) {
	a, err := r.decode(ctx, s, Batch{Snapshot: true}, 0)
	if err != nil {
		return f, err
	}
	f.snapshot = len(a.Snapshot)
	if local {
		var stats runtime.MemStats
		runtime.GC()
		runtime.GC() // the first left memory of finalizers and pools
		runtime.ReadMemStats(&stats)
		f.heap = stats.HeapAlloc
	}
	return f, nil
}

// chooseRepeated returns the case to repeat: one without open messages and problems, short,
// and with the most ids. It returns the ids as JSON strings without the last quote.
func (r *runner) chooseRepeated(ctx context.Context) (best *Case, names [][]byte, err error) {
	const long = 12
	for i := range r.suite.Cases {
		c := &r.suite.Cases[i]
		out, err := r.play(ctx, r.suite.Subject, c.Stream, c.Frames, playOptions{})
		if err != nil || len(out.open) > 0 || len(out.problems) > 0 {
			continue
		}
		n := ids(c.Frames, out)
		switch {
		case best == nil,
			len(best.Frames) > long && len(c.Frames) < len(best.Frames),
			len(c.Frames) <= long && len(n) > len(names):
			best, names = c, n
		}
	}
	if best == nil {
		return nil, nil, skipped("every case ends with open messages or has a bad frame: there is none to repeat")
	}
	if len(names) == 0 {
		return nil, nil, skipped("no id of a message occurs in the frames: all repetitions would be the same")
	}
	return best, names, nil
}

// ids returns the ids of runs, calls and responses that the frames contain as JSON
// strings. An id has a digit, which excludes words of the protocol. The session is
// excluded: all repetitions are one conversation.
func ids(frames []frame.Frame, out *run) [][]byte {
	seen := make(map[string]bool)
	var found [][]byte
	add := func(id, session string) {
		if len(id) < 3 || id == session || seen[id] || !strings.ContainsAny(id, "0123456789") {
			return
		}
		seen[id] = true
		quoted, err := marshal(id)
		if err != nil {
			return
		}
		for _, f := range frames {
			if bytes.Contains(f.Data, quoted) {
				found = append(found, quoted[:len(quoted)-1])
				return
			}
		}
	}
	for _, m := range out.messages {
		for _, id := range []string{m.Run, m.ParentRun, m.ParentCall, m.Tool.CallID, m.ResponseID, m.Delegation.ChildRun, m.Key, m.ParentKey} {
			add(id, m.Session)
		}
		for _, key := range []string{m.Key, m.ParentKey} {
			for part := range strings.FieldsFuncSeq(key, func(c rune) bool { return c == '/' || c == ':' }) {
				add(part, m.Session)
			}
		}
	}
	return found
}

// splitAtIDs splits data before the closing quote of each id, and removes the quote.
func splitAtIDs(data []byte, names [][]byte) [][]byte {
	var out [][]byte
	from := 0
	for i := 0; i < len(data); i++ {
		for _, n := range names {
			if bytes.HasPrefix(data[i:], n) && i+len(n) < len(data) && data[i+len(n)] == '"' {
				i += len(n)
				out = append(out, data[from:i])
				from = i + 1
				break
			}
		}
	}
	return append(out, data[from:])
}
