package verdict

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/earshot-dev/earshot/core/msg"
)

const sec = int64(time.Second)

// TestToleranceRank: the limit is above the 0.95 quantile in 95 of 100 cases, for any
// distribution, from 59 samples on, and the largest sample below.
func TestToleranceRank(t *testing.T) {
	for n, want := range map[int]int{8: 7, 58: 57, 59: 58, 93: 91, 128: 125} {
		if got := toleranceRank(n); got != want {
			t.Errorf("of %d samples number %d, want %d", n, got, want)
		}
	}
	r := rand.New(rand.NewPCG(1, 2))
	above, rounds := 0, 4000
	for range rounds {
		x := make([]float64, 100)
		for i := range x {
			x[i] = r.Float64()
		}
		slices.Sort(x)
		if x[toleranceRank(100)] > 0.95 {
			above++
		}
	}
	if share := float64(above) / float64(rounds); share < 0.94 {
		t.Errorf("above the quantile in %.3f of the cases", share)
	}
}

// TestHistory: a few outliers of many move nothing, few samples set no limit, and a
// stored history is the same.
func TestHistory(t *testing.T) {
	h := NewHistory()
	for n := range 100 {
		h.Add("build", int64(60+n%10)*sec)
	}
	h.Add("build", 6*3600*sec)
	h.Add("rare", sec)
	b, err := h.Marshal()
	if err != nil || h.Changed() {
		t.Fatal(err, h.Changed())
	}
	again := NewHistory()
	if err := again.Unmarshal(b); err != nil {
		t.Fatal(err)
	}
	for _, h := range []*History{h, again} {
		if b := h.Bound("build"); b.N != 101 || b.Limit != 103500*int64(time.Millisecond) || b.Longest != 6*3600*sec {
			t.Errorf("%+v", b)
		}
		if b := h.Bound("rare"); b.N != 1 || b.Limit != 0 {
			t.Errorf("%+v", b)
		}
	}
	for n := range 3 * maxKeys {
		h.Add(fmt.Sprint("key", n), sec)
		h.Add("build", sec)
	}
	if len(h.keys) > maxKeys || h.Bound("build").N != maxSamples {
		t.Errorf("%d keys", len(h.keys))
	}
}

func TestSignature(t *testing.T) {
	h := NewHistory()
	for arguments, want := range map[string]string{
		`{"command":"make test"}`: "make test", `{"command":"cd app && CI=1 make -j4 test","timeout":60000}`: "make 60 s",
		`{"command":["bash","-lc","/usr/bin/go test ./..."],"timeout":30}`: "go test 30 s", `{"cmd":"ls -la | wc"}`: "ls", `{"command":"make; echo done"}`: "make",
		`{"command":"git commit -m \"make it\""}`: "git commit", `{"file_path":"command"}`: "", `{"command":""}`: "", ``: "", `[1]`: "", `{"command":"`: "",
		`{"command":"npm run build\nnpm test"}`: "npm run", `{"command":"sleep 60; gh run view 7"}`: "gh run",
	} {
		_, command, limit := h.signature("Bash", msg.Raw([]byte(arguments)))
		got := command
		if limit > 0 {
			got += " " + span(limit)
		}
		if got != want {
			t.Errorf("%s: %q, want %q", arguments, got, want)
		}
	}
	for n := range 200 { // any bytes
		r := rand.New(rand.NewPCG(uint64(n), 1))
		b := []byte(`{"command":`)
		for range r.IntN(60) {
			b = append(b, `"\ {}[]:,;&|=-ac-lctimeout9`[r.IntN(27)])
		}
		h.signature("Bash", msg.Raw(b))
	}
}

// TestJudge has the verdicts that follow from the state of one run and its call.
func TestJudge(t *testing.T) {
	h := NewHistory()
	for n := range 42 {
		h.Add("tool Bash make test", int64(540+n*9)*sec)
	}
	now := 100_000 * sec
	type world struct {
		run  Run
		call Call
		kid  *Run
	}
	for name, c := range map[string]struct {
		set  func(w *world)
		want string // of the run and of the call
		next int64  // seconds from now
	}{
		"thirteen minutes": {func(w *world) { w.call.State.Begun = now - 780*sec }, "healthy; healthy", 583},
		"longer than ever": {func(w *world) { w.call.State.Begun = now - 1400*sec }, "tool_running by call c; tool_running: Bash `make test` has run 23 min; its longest of 42 runs took 15 min", 0},
		"a child's silence": {func(w *world) {
			w.kid.State.Awaits, w.kid.State.Answered, w.kid.Alive = Model, true, now-200*sec
			w.call.Child, w.call.Delegation, w.kid.Call, w.kid.Parent = w.kid, true, &w.call, &w.run
		}, "model_silent by run k; model_silent by run k", 0},
		"a child that ended": {func(w *world) {
			w.kid.Ended, w.kid.Alive = true, now-31*sec
			w.call.Child, w.call.Delegation, w.kid.Call, w.kid.Parent = w.kid, true, &w.call, &w.run
		}, "zombie by call c; zombie: kid finished 31 s ago and Bash `make test` has no result of it", 0},
		"a caller that ended": {func(w *world) {
			w.run.Ended, w.run.Alive, w.kid.Alive, w.kid.State.Awaits = true, now-100*sec, now-sec, Model
			w.kid.Call, w.kid.Parent = &w.call, &w.run
		}, "; healthy", 0},
	} {
		w := world{
			run:  Run{ID: "r", Agent: "pilot", State: &Progress{Awaits: Model, Answered: true}, Alive: now},
			call: Call{ID: "c", Tool: "Bash", State: &CallState{Key: "tool Bash make test", Command: "make test", Begun: now}},
			kid:  &Run{ID: "k", Agent: "kid", State: &Progress{}, Alive: now},
		}
		w.call.Caller = &w.run
		c.set(&w)
		j := Judge{Rules: DefaultRules(), History: h}
		s := &Session{Runs: []*Run{&w.run, w.kid}, Calls: []*Call{&w.call}}
		next := j.Session(s, now)
		show := func(v Verdict) string {
			out := v.Kind.String()
			if v.Cause != "" {
				return out + " by " + v.Cause
			}
			if v.Kind != Healthy {
				out += ": " + v.Evidence
			}
			return out
		}
		got := show(w.run.Verdict) + "; " + show(w.call.Verdict)
		if name == "a caller that ended" {
			if w.kid.Verdict.Kind != Orphan || !strings.Contains(w.kid.Verdict.Evidence, "its caller pilot ended 100 s ago") {
				t.Errorf("%s: %+v", name, w.kid.Verdict)
			}
			continue
		}
		if got != c.want {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
		if c.next != 0 && (next-now)/sec != c.next {
			t.Errorf("%s: judged again in %d s, want %d", name, (next-now)/sec, c.next)
		}
	}
}
