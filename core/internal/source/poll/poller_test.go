package poll

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/andybalholm/brotli"
	"go.uber.org/goleak"

	"github.com/earshot-dev/earshot/core/config/spec"
	"github.com/earshot-dev/earshot/core/internal/source"
	"github.com/earshot-dev/earshot/core/internal/source/recordtest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// api is a server whose answers a test sets.
type api struct {
	*httptest.Server
	mu      sync.Mutex
	answers map[string]string // by request URI
	etags   bool
	asked   []string
}

func newAPI(t *testing.T) *api {
	a := &api{answers: make(map[string]string)}
	a.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		a.mu.Lock()
		defer a.mu.Unlock()
		line := r.RequestURI
		text, ok := a.answers[r.RequestURI]
		etag := `"` + hash([]byte(text)) + `"`
		if inm := r.Header.Get("If-None-Match"); inm != "" {
			line += " if"
		}
		a.asked = append(a.asked, line)
		w.Header().Set("Content-Type", "application/json")
		if a.etags {
			w.Header().Set("ETag", etag)
		}
		switch {
		case !ok:
			w.WriteHeader(http.StatusNotFound)
		case a.etags && r.Header.Get("If-None-Match") == etag:
			w.WriteHeader(http.StatusNotModified)
		default:
			_, _ = io.WriteString(w, text)
		}
	}))
	t.Cleanup(a.Close)
	return a
}

func (a *api) set(uri, text string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.answers[uri] = text
}

// requests returns the requests since the last call.
func (a *api) requests() string {
	a.mu.Lock()
	defer a.mu.Unlock()
	s := strings.Join(a.asked, "\n")
	a.asked = nil
	return s
}

// The descriptions of two APIs: one numbers its pages, and has a list of sessions whose runs
// are requested one by one; the other has a cursor.
var (
	numbered = &Pages{
		Items: "data", Number: "page", Total: "meta.total_pages", Size: 100,
		Each: &Each{List: "/sessions", ID: "session_id", Path: "/{{id}}/runs", Without: []string{"page", "limit"}},
	}
	byCursor = &Pages{After: "after", Cursor: "id", Limit: "limit", Size: 100, Query: map[string]string{"order": "asc"}}
)

// poller returns one whose rounds the test makes.
func poller(t *testing.T, rec *recordtest.Recorder, s Settings) *Poller {
	t.Helper()
	s.Format = "fmt"
	p, err := New(s)
	if err != nil {
		t.Fatal(err)
	}
	p.rec = rec
	t.Cleanup(p.http.CloseIdleConnections)
	return p
}

func round(t *testing.T, p *Poller) {
	t.Helper()
	if err := p.round(t.Context()); err != nil {
		t.Fatal(err)
	}
}

// answers are the frames of all streams, in order.
func answers(rec *recordtest.Recorder) string {
	out := ""
	for _, s := range rec.Streams() {
		if len(s.Frames) > 0 && !s.Closed {
			out += "not closed: "
		}
		out += s.Text()
	}
	return out
}

// origins are those of the streams with frames.
func origins(rec *recordtest.Recorder) (out []string) {
	for _, s := range rec.Streams() {
		if len(s.Frames) > 0 {
			out = append(out, s.ID.Origin)
		}
	}
	return out
}

// Only a changed answer is recorded, in this process and the next.
func TestChanges(t *testing.T) {
	for _, etags := range []bool{false, true} {
		t.Run(fmt.Sprintf("etags %v", etags), func(t *testing.T) {
			a := newAPI(t)
			a.etags = etags
			rec := recordtest.New()
			s := Settings{Config: Config{URL: a.URL + "/x?token=hush&a=1"}}
			p := poller(t, rec, s)
			for _, text := range []string{"[1]", "[1]", "[1,2]", "[1,2]"} {
				a.set("/x?token=hush&a=1", text)
				round(t, p)
			}
			round(t, poller(t, rec, s))
			a.set("/x?token=hush&a=1", "[1]")
			round(t, poller(t, rec, s))
			recordtest.Equal(t, "frames", answers(rec), "body [1]\nbody [1,2]\nbody [1]\n")
			if o := origins(rec); len(o) != 3 || o[0] != a.URL+"/x?a=1" {
				t.Errorf("%q", o)
			}
			want := strings.TrimSuffix(strings.Repeat("/x?token=hush&a=1\n", 6), "\n")
			if etags {
				want = "/x?token=hush&a=1\n" + strings.TrimSuffix(strings.Repeat("/x?token=hush&a=1 if\n", 5), "\n")
			}
			recordtest.Equal(t, "requests", a.requests(), want)
		})
	}
}

func TestPagesByNumber(t *testing.T) {
	a := newAPI(t)
	a.set("/l?limit=2&page=1", `{"data":[1,2],"meta":{"page":1,"total_pages":2}}`)
	a.set("/l?limit=2&page=2", `{"data":[3],"meta":{"page":2,"total_pages":2}}`)
	rec := recordtest.New()
	p := poller(t, rec, Settings{Config: Config{URL: a.URL + "/l?limit=2", PageRequest: numbered}})
	round(t, p)
	round(t, p)
	a.set("/l?limit=2&page=2", `{"data":[3,4],"meta":{"page":2,"total_pages":2}}`)
	round(t, p)
	if got := answers(rec); strings.Count(got, "\n") != 3 || !strings.Contains(got, "[3,4]") {
		t.Errorf("frames: %s", got)
	}
	recordtest.Equal(t, "requests", a.requests(), strings.TrimSuffix(strings.Repeat("/l?limit=2&page=1\n/l?limit=2&page=2\n", 3), "\n"))

	// A server without pages answers every page number alike.
	b := newAPI(t)
	b.set("/r?page=1", "[1]")
	b.set("/r?page=2", "[1]")
	rec = recordtest.New()
	p = poller(t, rec, Settings{Config: Config{URL: b.URL + "/r", PageRequest: numbered}})
	round(t, p)
	round(t, p)
	recordtest.Equal(t, "frames", answers(rec), "body [1]\n")
	// A server with pages answers an empty page at the end.
	b.set("/r?page=2", "[2]")
	b.set("/r?page=3", "[]")
	round(t, p)
	recordtest.Equal(t, "frames", answers(rec), "body [1]\nbody [2]\n")
}

func TestPagesByCursor(t *testing.T) {
	a := newAPI(t)
	const base = "/v1/agents/a/messages?"
	a.set(base+"limit=2&order=asc", `[{"id":"m1"},{"id":"m2"}]`)
	a.set(base+"after=m2&limit=2&order=asc", `[{"id":"m3"}]`)
	rec := recordtest.New()
	s := Settings{Config: Config{URL: a.URL + base + "limit=2", PageRequest: byCursor}}
	p := poller(t, rec, s)
	round(t, p)
	recordtest.Equal(t, "requests", a.requests(), base+"limit=2&order=asc\n"+base+"after=m2&limit=2&order=asc")
	round(t, p)
	recordtest.Equal(t, "requests", a.requests(), base+"after=m2&limit=2&order=asc")
	a.set(base+"after=m2&limit=2&order=asc", `[{"id":"m3"},{"id":"m4"}]`)
	a.set(base+"after=m4&limit=2&order=asc", `[]`)
	round(t, p)
	p = poller(t, rec, s) // a restart
	a.requests()
	round(t, p)
	recordtest.Equal(t, "requests", a.requests(), base+"after=m4&limit=2&order=asc")
	recordtest.Equal(t, "frames", answers(rec), "body [{\"id\":\"m1\"},{\"id\":\"m2\"}]\nbody [{\"id\":\"m3\"}]\nbody [{\"id\":\"m3\"},{\"id\":\"m4\"}]\n")
}

// A server that names the next cursor itself.
func TestPagesByNext(t *testing.T) {
	a := newAPI(t)
	a.set("/l", `{"list":{"items":[1,2]},"paging":{"next":"c2"}}`)
	a.set("/l?cursor=c2", `{"list":{"items":[3]},"paging":{"next":null}}`)
	rec := recordtest.New()
	p := poller(t, rec, Settings{Config: Config{URL: a.URL + "/l", PageRequest: &Pages{Items: "list.items", After: "cursor", Next: "paging.next", Size: 100}}})
	round(t, p)
	round(t, p)
	recordtest.Equal(t, "requests", a.requests(), "/l\n/l?cursor=c2\n/l?cursor=c2")
	if got := answers(rec); strings.Count(got, "\n") != 2 {
		t.Errorf("frames: %s", got)
	}
}

func TestItemsOfAList(t *testing.T) {
	a := newAPI(t)
	a.set("/sessions?page=1&type=team", `{"data":[{"session_id":"s 1","updated_at":1},{"session_id":"s2","updated_at":1}],"meta":{"total_pages":2}}`)
	a.set("/sessions?page=2&type=team", `{"data":[{"session_id":"s3","updated_at":1}],"meta":{"total_pages":2}}`)
	for _, id := range []string{"s%201", "s2", "s3"} {
		a.set("/sessions/"+id+"/runs?type=team", `[{"run_id":"r-`+id+`"}]`)
	}
	rec := recordtest.New()
	s := Settings{Config: Config{URL: a.URL + "/sessions?type=team", PageRequest: numbered}}
	p := poller(t, rec, s)
	round(t, p)
	recordtest.Equal(t, "frames", answers(rec), "body [{\"run_id\":\"r-s%201\"}]\nbody [{\"run_id\":\"r-s2\"}]\nbody [{\"run_id\":\"r-s3\"}]\n")
	recordtest.Equal(t, "origin", origins(rec)[0], a.URL+"/sessions/s%201/runs?type=team")
	a.requests()

	// An unchanged item is not requested again, not even after a restart.
	p = poller(t, rec, s)
	round(t, p)
	recordtest.Equal(t, "requests", a.requests(), "/sessions?page=1&type=team\n/sessions?page=2&type=team")
	a.set("/sessions?page=2&type=team", `{"data":[{"session_id":"s3","updated_at":2}],"meta":{"total_pages":2}}`)
	a.set("/sessions/s3/runs?type=team", `[{"run_id":"r-s3"},{"run_id":"more"}]`)
	round(t, p)
	recordtest.Equal(t, "requests", a.requests(), "/sessions?page=1&type=team\n/sessions?page=2&type=team\n/sessions/s3/runs?type=team")
	if got := answers(rec); strings.Count(got, "\n") != 4 || !strings.HasSuffix(got, "body [{\"run_id\":\"r-s3\"},{\"run_id\":\"more\"}]\n") {
		t.Errorf("frames: %s", got)
	}

	// An item that cannot be read delays no other item, and is requested again.
	a.set("/sessions?page=1&type=team", `{"data":[{"session_id":"gone"},{"session_id":"s2","updated_at":3}],"meta":{"total_pages":1}}`)
	a.set("/sessions/s2/runs?type=team", `[]`)
	if err := p.round(t.Context()); err == nil || !strings.Contains(err.Error(), "404") {
		t.Errorf("%v", err)
	}
	if got := a.requests(); !strings.Contains(got, "/s2/runs") {
		t.Errorf("requests: %s", got)
	}
}

// TestItemThatFails: an item that the server cannot answer, again and again, is asked for less and less often, and has the others
// wait no longer than the interval.
func TestItemThatFails(t *testing.T) {
	a := newAPI(t)
	list := func(n int) { // of a session that fails, and one that changes
		a.set("/sessions?page=1", fmt.Sprintf(`{"data":[{"session_id":"broken"},{"session_id":"s1","updated_at":%d}],"meta":{"total_pages":1}}`, n))
		a.set("/sessions/s1/runs", fmt.Sprintf(`[%d]`, n))
	}
	list(0)
	rec := recordtest.New()
	const interval = 50 * time.Millisecond
	p, err := New(Settings{Env: source.Env{Format: "fmt"}, Config: Config{URL: a.URL + "/sessions", PageRequest: numbered, Interval: spec.Duration(interval)}})
	if err != nil {
		t.Fatal(err)
	}
	rec.Run(t, p)
	rec.Want(t, "the item", func(s []recordtest.Stream) bool { return len(s) > 1 && s[1].Closed })
	time.Sleep(30 * interval)
	broken := strings.Count(a.requests(), "broken")
	list(1)
	began := time.Now()
	rec.Want(t, "its change", func(s []recordtest.Stream) bool { return len(s) > 2 && s[2].Closed })
	if took := time.Since(began); took > 6*interval || broken > 8 {
		t.Errorf("the change took %s; the broken item was asked for %d times", took, broken)
	}
}

// A State has the latest items, and no more than a recorder takes.
func TestStateOfItems(t *testing.T) {
	s := readSeenItems(nil)
	for i := range uint64(20_000) {
		s.set(i, uint32(i))
		s.set(i/2, uint32(i)) // changed again
	}
	b := s.state()
	if len(b) > maxState || len(b) < maxState-entrySize {
		t.Errorf("%d bytes", len(b))
	}
	again := readSeenItems(b)
	if again.entry[19_999] != 19_999 || len(again.entry) != maxState/entrySize || again.dirty != 0 {
		t.Errorf("%d entries", len(again.entry))
	}
	if got := again.state(); string(got) != string(b) {
		t.Error("a state that is read and written differs")
	}
	if len(s.order) > 3*len(s.entry) {
		t.Errorf("%d in order", len(s.order))
	}
}

func TestFailures(t *testing.T) {
	for name, c := range map[string]struct {
		status      int
		contentType string
		body, want  string
	}{
		"status": {500, "application/json", "{}", "500"},
		"html":   {200, "text/html", "<p>", "not JSON"},
	} {
		t.Run(name, func(t *testing.T) {
			srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				w.Header().Set("Content-Type", c.contentType)
				w.Header().Set("Retry-After", "7")
				w.WriteHeader(c.status)
				_, _ = io.WriteString(w, c.body)
			}))
			defer srv.Close()
			p := poller(t, recordtest.New(), Settings{Config: Config{URL: srv.URL}})
			err := p.round(t.Context())
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("%v", err)
			}
			if e := (*source.Answered)(nil); errors.As(err, &e) && e.After != 7*time.Second {
				t.Errorf("retry after %s", e.After)
			}
			p.http.CloseIdleConnections()
		})
	}
}

// TestEncodedAlthoughNotAskedFor: an encoding that the request did not accept is undone.
func TestEncodedAlthoughNotAskedFor(t *testing.T) {
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		w.Header().Set("Content-Encoding", "br")
		z := brotli.NewWriter(w)
		_, _ = io.WriteString(z, `[{"id":1}]`)
		_ = z.Close()
	}))
	defer srv.Close()
	rec := recordtest.New()
	p := poller(t, rec, Settings{Config: Config{URL: srv.URL}})
	round(t, p)
	recordtest.Equal(t, "frames", rec.Streams()[1].Text(), "body [{\"id\":1}]\n")
	p.http.CloseIdleConnections()
}

// An answer beyond the limit is set aside with its head.
func TestAnswerBeyondTheLimit(t *testing.T) {
	a := newAPI(t)
	a.set("/x", `["`+strings.Repeat("x", 5000)+`"]`)
	rec := recordtest.New()
	round(t, poller(t, rec, Settings{Config: Config{URL: a.URL + "/x"}, MaxBody: 1000}))
	f := rec.Streams()[1].Frames[0]
	if f.Reason != "too_long" || len(f.Data) != 1000 || f.Dropped != 4004 {
		t.Errorf("%s, %d bytes, %d dropped", f.Reason, len(f.Data), f.Dropped)
	}
}

// A recorder that fails loses nothing: the answer is recorded by the next round.
func TestRecorderFails(t *testing.T) {
	a := newAPI(t)
	a.set("/x", "[1]")
	rec := recordtest.New()
	p := poller(t, rec, Settings{Config: Config{URL: a.URL + "/x"}})
	round(t, p)
	a.set("/x", "[2]")
	rec.Fail(errors.New("disk on fire"))
	if err := p.round(t.Context()); err == nil {
		t.Error("no error")
	}
	rec.Fail(nil)
	round(t, p)
	recordtest.Equal(t, "frames", answers(rec), "body [1]\nbody [2]\n")
}

func TestRun(t *testing.T) {
	a := newAPI(t)
	a.set("/x", "[1]")
	rec := recordtest.New()
	p, err := New(Settings{Env: source.Env{Format: "fmt"}, Config: Config{URL: a.URL + "/x", Interval: spec.Duration(time.Millisecond)}})
	if err != nil {
		t.Fatal(err)
	}
	if p.Idle() {
		t.Error("idle before anything was asked")
	}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- p.Run(ctx, rec) }()
	for i := range 3 {
		if _, ok := rec.Wait(t.Context(), func(s []recordtest.Stream) bool { return len(s) > i+1 && s[i+1].Closed }); !ok {
			t.Fatal("not recorded")
		}
		a.set("/x", fmt.Sprintf("[%d]", i+2))
	}
	cancel()
	if err := <-done; err != nil || !p.Idle() {
		t.Errorf("%v, idle %v", err, p.Idle())
	}
}

func TestSettings(t *testing.T) {
	for want, s := range map[string]Settings{
		"url": {Config: Config{URL: "ftp://h"}}, "pages": {Config: Config{URL: "http://h", Pages: "x"}}, "auto": {Config: Config{URL: "http://h", Pages: Auto}}, "cursor": {Config: Config{URL: "http://h", PageRequest: &Pages{After: "a", Size: 1}}}, "limit": {Config: Config{URL: "http://h"}, MaxBody: -1}, "method": {Config: Config{URL: "http://h", Method: "a b"}},
	} {
		if _, err := New(s); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", want, err)
		}
	}
}
