package pipeline

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/earshot-dev/earshot/core/internal/assemble"
	"github.com/earshot-dev/earshot/core/internal/checkpoint"
)

// TestReplaysAreInTheCheckpoint: what was asked for and is not done is there after a restart, without erased sessions, and
// the sources are asked for it once they have found their files.
func TestReplaysAreInTheCheckpoint(t *testing.T) {
	ref := func(session string) assemble.RunRef {
		return assemble.RunRef{Tenant: "t", Format: "f", Session: session, Run: "run"}
	}
	check := checkpoints{map[string]checkpoint.Stream{}, map[string][]byte{}}
	stored := func(q *replays) map[uint64][]assemble.RunRef {
		t.Helper()
		var d checkpoint.Delta
		if err := q.checkpoint(&d); err != nil {
			t.Fatal(err)
		}
		if err := check.Commit(d); err != nil {
			t.Fatal(err)
		}
		next := replays{awaited: make(map[uint64][]assemble.RunRef)}
		if err := next.load(check); err != nil {
			t.Fatal(err)
		}
		if next.unasked != (len(next.awaited) > 0) || next.early != next.unasked {
			t.Errorf("asked %t, early %t of %d", !next.unasked, next.early, len(next.awaited))
		}
		return next.awaited
	}
	q := replays{awaited: make(map[uint64][]assemble.RunRef)}
	is := func(name string, want map[uint64][]assemble.RunRef) {
		t.Helper()
		if d := cmp.Diff(want, stored(&q)); d != "" {
			t.Errorf("%s (-want +got):\n%s", name, d)
		}
	}
	none := map[uint64][]assemble.RunRef{}
	is("nothing", none)
	q.ask(replay{1, ref("a")})
	q.ask(replay{1, ref("a")})
	q.ask(replay{2, ref("b")})
	is("of the batch at hand", map[uint64][]assemble.RunRef{1: {ref("a")}, 2: {ref("b")}})
	q.await(q.pending[2]) // the other stream is open
	q.done()
	is("awaited", map[uint64][]assemble.RunRef{2: {ref("b")}})
	q.await(replay{2, ref("c")})
	q.await(replay{3, ref("c")})
	q.erase(func(tenant, session string) bool { return tenant == "t" && session == "c" })
	is("without an erased session", map[uint64][]assemble.RunRef{2: {ref("b")}})
	if runs := q.take(2); len(runs) != 1 {
		t.Errorf("took %v", runs)
	}
	is("done", none)

	drained, wanted := false, make(chan bool, 1)
	files := &fileSources{of: map[*Feed]Files{{source: "s"}: wantedFiles{filesDrained{&drained}, "k", wanted}}}
	q = replays{awaited: map[uint64][]assemble.RunRef{nameOf("s", "k"): {ref("a")}}, unasked: true, early: true}
	at := time.Now()
	if q.askSources(files, at); !q.unasked {
		t.Error("asked before the files are found")
	}
	drained = true
	if q.askSources(files, at); q.unasked || !<-wanted {
		t.Error("not asked")
	}
	q.await(replay{nameOf("s", "k"), ref("b")})
	drained = false
	if q.askSources(files, at); !q.unasked {
		t.Error("asked twice at once")
	}
	if q.askSources(files, at.Add(slowEvery)); q.unasked || !<-wanted {
		t.Error("files that are read hold back those that were found late")
	}
}

// wantedFiles sends whether a stream is wanted.
type wantedFiles struct {
	filesDrained
	key    string
	wanted chan bool
}

func (f wantedFiles) Again(wanted func(key string) bool) { f.wanted <- wanted(f.key) }
