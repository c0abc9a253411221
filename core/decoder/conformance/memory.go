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
	exchanges = 10000
	// slack is what the heap of this process may grow by for reasons of its own.
	slack = 256 << 10
)

// memory is C13. A conversation of ten thousand exchanges, each complete and with
// ids of its own, leaves no more behind than one of five thousand. What a decoder
// remembers of what is over must have reached its limit by then.
func memory(ctx context.Context, r *runner) error {
	best, names, err := r.exchange(ctx)
	if err != nil {
		return err
	}
	_, local := r.suite.Subject.(*Local)
	if !local && !r.suite.Subject.Describe().Snapshots {
		return skipped("the decoder has no snapshots, and its memory is not that of this process")
	}
	pieces := make([][][]byte, len(best.Frames))
	for i, f := range best.Frames {
		pieces[i] = split(f.Data, names)
	}
	stream, err := r.open(ctx, r.suite.Subject, best.Stream, nil)
	if err != nil {
		return err
	}
	defer stream.Close()
	var half, full footprint
	var frames []frame.Frame
	for n := 1; n <= exchanges; n++ {
		for i, f := range best.Frames {
			f.Data = bytes.Join(pieces[i], fmt.Appendf(nil, "-%d\"", n))
			frames = append(frames, f)
		}
		if len(frames) < 256 && n%(exchanges/2) != 0 {
			continue
		}
		if _, err := r.decode(ctx, stream, Batch{Frames: frames}, 0); err != nil {
			return err
		}
		frames = frames[:0]
		switch n {
		case exchanges / 2:
			half, err = r.measure(ctx, stream, local)
		case exchanges:
			full, err = r.measure(ctx, stream, local)
		}
		if err != nil {
			return err
		}
	}
	runtime.KeepAlive(stream)
	switch {
	case full.snapshot > half.snapshot+half.snapshot/10+1<<10:
		return breaks("D11", "the snapshot grows with what is over: %d bytes after %d exchanges (case %s), %d after %d",
			half.snapshot, exchanges/2, best.Name, full.snapshot, exchanges)
	case full.heap > half.heap+slack:
		return breaks("D11", "memory grows with what is over: by %d bytes between exchange %d and %d (case %s)",
			full.heap-half.heap, exchanges/2, exchanges, best.Name)
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
		runtime.GC() // what finalizers and pools still held
		runtime.ReadMemStats(&stats)
		f.heap = stats.HeapAlloc
	}
	return f, nil
}

// exchange chooses the case to repeat: one that leaves nothing open, short, and
// with as many ids as there are. It returns the ids, quoted, without the last
// quote.
func (r *runner) exchange(ctx context.Context) (best *Case, names [][]byte, err error) {
	const long = 12
	for i := range r.suite.Cases {
		c := &r.suite.Cases[i]
		out, err := r.play(ctx, r.suite.Subject, c.Stream, c.Frames, how{})
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
		return nil, nil, skipped("every case leaves something open or has a bad frame: there is no exchange to repeat")
	}
	if len(names) == 0 {
		return nil, nil, skipped("the messages have no ids that stand in the frames: every exchange would be the same")
	}
	return best, names, nil
}

// ids returns the ids of runs, calls and responses that stand in the frames as
// JSON strings. An id has a digit; so words of the protocol are not taken for one.
// The session stays: it is one long conversation.
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

// split cuts data before the closing quote of each id, and takes the quote away.
func split(data []byte, names [][]byte) [][]byte {
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
