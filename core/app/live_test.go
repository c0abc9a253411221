package app

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/earshot-dev/earshot/core/config"
	"github.com/earshot-dev/earshot/core/config/spec"
	"github.com/earshot-dev/earshot/core/frame"
	"github.com/earshot-dev/earshot/core/internal/journal"
	"github.com/earshot-dev/earshot/core/internal/redact"
	"github.com/earshot-dev/earshot/core/internal/source"
	"github.com/earshot-dev/earshot/core/internal/source/tap"
	"github.com/earshot-dev/earshot/core/internal/telemetry"
)

// TestPersonalKindsAreThoseOfTheRedactor: the configuration names every kind.
func TestPersonalKindsAreThoseOfTheRedactor(t *testing.T) {
	if !slices.Equal(config.PersonalKinds(), redact.PersonalKinds()) {
		t.Error(config.PersonalKinds(), redact.PersonalKinds())
	}
}

// scripted is a listener that records a few frames, and the pipeline that receives them.
type scripted struct {
	source.Sink
	source.Stream
	says []string
	fail error
	idle chan struct{}
	got  chan string
}

func (h *scripted) Run(ctx context.Context, rec source.Recorder) error {
	r, err := rec.Begin(ctx, "f", source.ID{Origin: "/o"})
	if err != nil {
		return err
	}
	for _, s := range h.says {
		if err := r.Record(ctx, &frame.Frame{Kind: frame.Event, Data: []byte(s)}); err != nil {
			return err
		}
	}
	if err := r.Close(); err != nil {
		return err
	}
	close(h.idle)
	if h.fail != nil {
		return h.fail
	}
	<-ctx.Done()
	return nil
}

func (h *scripted) Idle() bool {
	select {
	case <-h.idle:
		return true
	default:
		return false
	}
}

func (h *scripted) Known() []source.Known { return nil }
func (h *scripted) Forget(...string)      {}
func (h *scripted) Open(context.Context, source.ID, func(int64)) (source.Stream, int64, error) {
	return h, 0, nil
}
func (h *scripted) Close(context.Context, bool) func() error { return func() error { return nil } }
func (h *scripted) Deliver(_ context.Context, b *frame.Batch) error {
	for i := range b.Frames {
		h.got <- string(b.Frames[i].Data)
	}
	return nil
}

// Recorded frames go through redaction and the journal, in this order, to the
// pipeline; and it is drained when the listener is idle and the journal is read.
func TestWhatIsHeardGoesThroughTheJournal(t *testing.T) {
	secret := "AKIA" + "ABCDEFGHIJ234567"
	h := &scripted{says: []string{"one", "two " + secret}, idle: make(chan struct{}), got: make(chan string, 10)}
	c := config.Default()
	secrets, err := redactor(c, func(string, int) {})
	if err != nil {
		t.Fatal(err)
	}
	j, err := journal.Open(journal.Settings{Dir: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	defer j.Close()
	l := &live{h, secrets.Recorder(j.Recorder("s")), j.Reader("s", "f", nil), &attempts{failing: new(telemetry.Gauge)}}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- l.Run(ctx, h) }()
	for _, want := range []string{"one", "two [redacted:aws_access_key]"} {
		if got := <-h.got; got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
	for end := time.Now().Add(time.Minute); !l.Drained(); {
		if time.Now().After(end) {
			t.Fatal("not drained")
		}
		<-time.After(time.Millisecond)
	}
	cancel()
	if err := <-done; err != nil {
		t.Error(err)
	}
}

// A listener that cannot listen ends its reader too.
func TestListenerThatFails(t *testing.T) {
	inUse := errors.New("address in use")
	h := &scripted{fail: inUse, idle: make(chan struct{}), got: make(chan string, 10)}
	j, err := journal.Open(journal.Settings{Dir: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	defer j.Close()
	l := &live{h, j.Recorder("s"), j.Reader("s", "f", nil), &attempts{failing: new(telemetry.Gauge)}}
	if err := l.Run(t.Context(), h); !errors.Is(err, inUse) {
		t.Error(err)
	}
}

func TestFormatsOfASource(t *testing.T) {
	routes := &tap.Config{Routes: []tap.Route{{Format: "a"}, {Format: "b"}, {Format: "a"}}}
	for want, c := range map[string]config.Source{
		"x": {Format: "x"}, "x a b": {Format: "x", Section: routes}, "a b": {Section: routes}, "b a": {Format: "b", Section: routes},
	} {
		if got := c.Formats(); strings.Join(got, " ") != want || !slices.Equal(got, strings.Fields(want)) {
			t.Errorf("%q, want %q", got, want)
		}
	}
}

func TestRedactorOfAConfiguration(t *testing.T) {
	c := config.Default()
	c.Redact = config.Redact{Keys: []string{"pw"}, Patterns: []config.Pattern{{Name: "n", Regex: "E-[0-9]+"}}, Mode: config.RedactHash, HashSalt: spec.NewSecret("salt")}
	var found []string
	r, err := redactor(c, func(rule string, _ int) { found = append(found, rule) })
	if err != nil {
		t.Fatal(err)
	}
	if got := r.String(`{"pw":"x"}`); !strings.HasPrefix(got, `{"pw":"[redacted:pw:`) {
		t.Error(got)
	}
	if got := r.String("E-77"); !strings.HasPrefix(got, "[redacted:n:") || len(found) != 2 {
		t.Error(got, found)
	}
	c.Redact = config.Redact{Mode: config.RedactMask}
	if r, err := redactor(c, nil); r != nil || err != nil {
		t.Error("there is nothing to redact", r, err)
	}
}
