package journal

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/earshot-dev/earshot/core/internal/source"
)

// history is a random course of events: listeners that record, readers and whole
// processes that stop anywhere, rewinds, and a checkpoint that moves now and then.
type history struct {
	t   *testing.T
	rng *rand.Rand
	s   Settings
	j   *Journal
	k   *sink

	reader *Reader
	stop   func()
	named  map[string]source.Recording
	conns  []source.Recording
	model  map[string][]string // by key; connections by the data of their first frame
	firsts []string            // of conns
	n      int
}

func (h *history) start() {
	h.j = open(h.t, h.s)
	h.named = make(map[string]source.Recording)
	h.conns, h.firsts = nil, nil
	h.reader, h.stop = follow(h.t, h.j, h.k)
}

func (h *history) recording(key string) source.Recording {
	if h.named[key] == nil {
		h.named[key] = begin(h.t, h.j, key)
	}
	return h.named[key]
}

func (h *history) step() {
	t, rng := h.t, h.rng
	h.n++
	key := fmt.Sprintf("key%d", rng.IntN(5))
	switch p := rng.IntN(100); {
	case p < 50:
		data := fmt.Sprintf("%d:%s", h.n, strings.Repeat("z", rng.IntN(120)))
		put(t, h.recording(key), data)
		h.model[key] = append(h.model[key], data)
	case p < 55:
		n := int64(rng.IntN(50))
		h.recording(key).Gap("why", 1, n)
		h.model[key] = append(h.model[key], fmt.Sprintf("<why %d>", max(n, 1)))
	case p < 60:
		if err := h.recording(key).Mark(fmt.Append(nil, h.n)); err != nil {
			t.Fatal(err)
		}
	case p < 64:
		closed(t, h.recording(key))
		delete(h.named, key)
	case p < 70:
		r := begin(t, h.j, "")
		first := fmt.Sprintf("c%d", h.n)
		put(t, r, first)
		h.conns, h.firsts = append(h.conns, r), append(h.firsts, first)
		h.model[first] = []string{first}
	case p < 78:
		if len(h.conns) > 0 {
			i := rng.IntN(len(h.conns))
			data := fmt.Sprintf("more %d", h.n)
			put(t, h.conns[i], data)
			h.model[h.firsts[i]] = append(h.model[h.firsts[i]], data)
			if rng.IntN(2) == 0 {
				closed(t, h.conns[i])
				h.conns, h.firsts = slices.Delete(h.conns, i, i+1), slices.Delete(h.firsts, i, i+1)
			}
		}
	case p < 82:
		sync_(t, h.recording(key))
	case p < 88:
		h.k.commit()
	case p < 92:
		h.k.rewind(func(n int) int { return rng.IntN(n) })
	case p < 95: // the pipeline ends, and begins where the checkpoint is
		h.stop()
		h.k.crash()
		h.reader, h.stop = follow(t, h.j, h.k)
	case p < 97: // the process ends
		h.stop()
		h.j.mustClose(t)
		h.k.crash()
		h.start()
	default:
		<-time.After(time.Duration(rng.IntN(2000)) * time.Microsecond)
	}
}

func (h *history) check() {
	t, k := h.t, h.k
	for key, want := range h.model {
		got := k.content(key)
		if strings.HasPrefix(key, "c") {
			got = nil
			k.mu.Lock()
			for _, name := range k.names("") {
				if f := k.streams[name].frames; len(f) > 0 && string(f[0].Data) == key {
					for i := range f {
						got = append(got, string(f[i].Data))
					}
				}
			}
			k.mu.Unlock()
		}
		if !slices.Equal(got, want) {
			i := 0
			for i < min(len(got), len(want)) && got[i] == want[i] {
				i++
			}
			t.Errorf("%s: %d frames, want %d; they differ at %d", key, len(got), len(want), i)
		}
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	if len(k.troubles) > 0 {
		t.Errorf("trouble %q", k.troubles)
	}
	open := 0
	for _, st := range k.streams {
		if !st.closed {
			open++
		}
	}
	if n := h.j.Stats().Streams; open > n {
		t.Errorf("%d streams are open at the sink, %d in the journal", open, n)
	}
}

// TestRandomHistories restarts any part at any point: every frame is delivered once, in order.
func TestRandomHistories(t *testing.T) {
	for seed := range uint64(24) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			t.Parallel()
			h := &history{t: t, rng: rand.New(rand.NewPCG(seed, 7)), k: newSink(t), model: make(map[string][]string)}
			h.s = small(t, t.TempDir())
			h.s.SegmentSize = 1500 + h.rng.Int64N(3000)
			h.k.auto = seed%3 == 0
			h.start()
			for range 700 {
				h.step()
			}
			poll(t, "drained", h.reader.Drained)
			h.check()
			h.k.commit()
			poll(t, "what is safe is gone", func() bool { return len(files(t, h.s.Dir, "seg")) <= 1 && len(files(t, h.s.Dir, "idx")) == 0 })
			h.stop()
			h.j.mustClose(t)
			h.k.crash()
			h.start()
			poll(t, "drained", h.reader.Drained)
			h.check()
		})
	}
}
