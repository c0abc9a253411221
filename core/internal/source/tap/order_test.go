package tap

import (
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/earshot-dev/earshot/core/internal/source"
	"github.com/earshot-dev/earshot/core/internal/source/recordtest"
)

// later has the recording of a path begin when the returned function is called.
func (f *fixture) later(path string) (begin func()) {
	gate := make(chan struct{})
	f.rec.BeforeBegin(func(id source.ID) {
		if strings.HasSuffix(id.Origin, path) {
			<-gate
		}
	})
	return func() { close(gate) }
}

// origins are the paths of the streams in the order of their beginning.
func origins(all []recordtest.Stream) (out []string) {
	for _, s := range all {
		out = append(out, s.ID.Origin[strings.LastIndexByte(s.ID.Origin, '/'):])
	}
	return out
}

// An agent that has a whole response sends its next request at once: that one is recorded behind it,
// however late the goroutine that records the response gets a processor.
func TestRecordedInOrderOfResponses(t *testing.T) {
	for name, length := range map[string]bool{"length": true, "chunks": false} {
		t.Run(name, func(t *testing.T) {
			f := start(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				_, _ = io.Copy(io.Discard, r.Body)
				w.Header().Set("Content-Type", "application/json")
				_, _ = io.WriteString(w, `{"a":`)
				if !length {
					_ = http.NewResponseController(w).Flush()
				}
				_, _ = io.WriteString(w, "1}")
			}))
			begin := f.later("/first")
			f.do(f.request("POST", "/first", strings.NewReader("{}")))
			f.do(f.request("POST", "/second", strings.NewReader("{}")))
			time.Sleep(20 * time.Millisecond) // a second that does not wait would be recorded now
			begin()
			recordtest.Equal(t, "order", strings.Join(origins(f.closed(2)), " "), "/first /second")
		})
	}
}

// The events that a client has of a response that goes on are recorded before its next request, which
// does not wait for more of them.
func TestRecordedInOrderOfEvents(t *testing.T) {
	in := make(chan string)
	f := start(t, events(in))
	begin := f.later("/first")
	first, err := f.client.Do(f.request("POST", "/first", strings.NewReader("{}")))
	if err != nil {
		t.Fatal(err)
	}
	defer first.Body.Close()
	const event = "data: {}\n\n"
	in <- event
	if _, err := io.ReadFull(first.Body, make([]byte, len(event))); err != nil {
		t.Fatal(err)
	}
	second, err := f.client.Do(f.request("POST", "/second", strings.NewReader("{}")))
	if err != nil {
		t.Fatal(err)
	}
	defer second.Body.Close()
	time.Sleep(20 * time.Millisecond)
	begin()
	s, ok := f.rec.Wait(f.deadline(), func(all []recordtest.Stream) bool { return len(all) == 2 })
	if got := strings.Join(origins(s), " "); !ok || got != "/first /second" || len(s[0].Frames) != 2 || s[0].Closed {
		t.Errorf("%s: %+v", got, s)
	}
	close(in)
	f.closed(2)
}

// A response that cannot be recorded delays another one for a while, and not longer.
func TestOrderIsNoReasonToLoseBytes(t *testing.T) {
	in := make(chan string, 1)
	f := start(t, events(in))
	begin := f.later("/first")
	first, err := f.client.Do(f.request("POST", "/first", strings.NewReader("{}")))
	if err != nil {
		t.Fatal(err)
	}
	defer first.Body.Close()
	second, err := f.client.Do(f.request("POST", "/second", strings.NewReader("{}")))
	if err != nil {
		t.Fatal(err)
	}
	defer second.Body.Close()
	s, ok := f.rec.Wait(f.deadline(), func(all []recordtest.Stream) bool { return len(all) == 1 })
	if got := strings.Join(origins(s), " "); !ok || got != "/second" {
		t.Errorf("%s: %+v", got, s)
	}
	begin()
	close(in)
	f.closed(2)
}
