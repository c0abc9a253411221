package tap

import (
	"context"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/earshot-dev/earshot/core/internal/source"
	"github.com/earshot-dev/earshot/core/internal/source/recordtest"
)

// atOnce has requests recorded that have no response.
func atOnce(s *Settings) { s.HeadPatience = time.Millisecond }

// recorded waits until the n-th stream has so many frames.
func (f *fixture) recorded(n, frames int) recordtest.Stream {
	f.Helper()
	s, ok := f.rec.Wait(f.deadline(), func(all []recordtest.Stream) bool { return len(all) > n && len(all[n].Frames) >= frames })
	if !ok {
		f.Fatalf("stream %d has no %d frames: %+v", n, frames, s)
	}
	return s[n]
}

// TestUnansweredRequestIsRecorded: a request whose response does not begin is recorded while its client waits, and when that
// gives up, that there was no response.
func TestUnansweredRequestIsRecorded(t *testing.T) {
	gone := make(chan struct{})
	f := start(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		<-r.Context().Done()
		close(gone)
	}), atOnce)
	r := f.request("POST", "/v1/messages", strings.NewReader(`{"prompt":"x"}`))
	ctx, cancel := context.WithCancel(r.Context())
	done := make(chan error, 1)
	go func() {
		_, err := f.client.Do(r.WithContext(ctx))
		done <- err
	}()
	s := f.recorded(0, 1)
	recordtest.Equal(t, "while it waits", show(s.Frames), "request< POST /v1/messages {\"prompt\":\"x\"}\n")
	if s.Closed || f.tap.Idle() {
		t.Error("it has ended")
	}
	cancel()
	if err := <-done; err == nil {
		t.Error("there was a response")
	}
	<-gone
	s = f.closed(1)[0]
	recordtest.Equal(t, "in the end", show(s.Frames), "request< POST /v1/messages {\"prompt\":\"x\"}\n")
	facts, ok := source.ParseResponseInfo(s.State)
	if !ok || facts.Failure != source.FailureClosed || facts.Status != 0 || facts.Timing.FirstByte != 0 || facts.Timing.Total <= 0 {
		t.Errorf("facts %s", s.State)
	}
}

// TestSlowHead: the response that begins late is recorded behind its request, as one that begins at once, and the
// provider's id of the request between the two.
func TestSlowHead(t *testing.T) {
	for name, c := range map[string]struct{ contentType, body, want string }{
		"events":          {"text/event-stream", "data: 1\n\ndata: 2\n\n", "event 1\nevent 2\nclose \n"},
		"document":        {"application/json", `{"a":1}`, "body {\"a\":1}\nclose \n"},
		"of no format":    {"text/html", "<p>", ""},
		"an empty answer": {"application/json", "", "close \n"},
	} {
		t.Run(name, func(t *testing.T) {
			head := make(chan struct{})
			f := start(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				_, _ = io.Copy(io.Discard, r.Body)
				<-head
				w.Header().Set("Content-Type", c.contentType)
				w.Header().Set("Request-Id", "req_7")
				_, _ = io.WriteString(w, c.body)
			}), atOnce)
			r := f.request("POST", "/v1/messages", strings.NewReader("{}"))
			r.Header.Set("Session_id", "harbour")
			go func() {
				f.recorded(0, 1)
				close(head)
			}()
			if _, got := f.do(r); got != c.body {
				t.Errorf("body %q", got)
			}
			s := f.closed(1)[0]
			want := "request< POST /v1/messages #{\"session_id\":\"harbour\"} {}\n"
			if name != "of no format" {
				want += "request< POST /v1/messages #{\"request-id\":\"req_7\"} \n"
			}
			recordtest.Equal(t, "frames", show(s.Frames), want+c.want)
			if facts, _ := source.ParseResponseInfo(s.State); facts.Failure != "" || facts.Status != 200 || facts.Timing.FirstByte <= 0 {
				t.Errorf("facts %s", s.State)
			}
		})
	}
}

// TestSlowUpload: a request that is still being sent is not recorded in part.
func TestSlowUpload(t *testing.T) {
	f := start(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		w.Header().Set("Content-Type", "application/json")
		_, _ = io.WriteString(w, "{}")
	}), atOnce)
	body, send := io.Pipe()
	go func() {
		_, _ = io.WriteString(send, `{"a":`)
		time.Sleep(50 * time.Millisecond)
		_, _ = io.WriteString(send, "1}")
		_ = send.Close()
	}()
	f.do(f.request("POST", "/x", body))
	recordtest.Equal(t, "frames", show(f.closed(1)[0].Frames), "request< POST /x {\"a\":1}\nbody {}\nclose \n")
}

// TestConnectionDiesBeforeTheHead: the request is recorded, and that nothing came to it; the client has the tap's own error.
func TestConnectionDiesBeforeTheHead(t *testing.T) {
	for name, change := range map[string]func(*Settings){"at once": func(*Settings) {}, "recorded before": atOnce} {
		t.Run(name, func(t *testing.T) {
			listener, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
			if err != nil {
				t.Fatal(err)
			}
			defer listener.Close()
			f := startAt(t, "http://"+listener.Addr().String(), change)
			go func() {
				c, err := listener.Accept()
				if err != nil {
					return
				}
				if _, _ = c.Read(make([]byte, 1<<10)); name != "at once" {
					f.recorded(0, 1)
				}
				_ = c.Close()
			}()
			res, _ := f.do(f.request("POST", "/v1/messages", strings.NewReader(`{"prompt":"x"}`)))
			if res.StatusCode != http.StatusBadGateway {
				t.Errorf("status %d", res.StatusCode)
			}
			s := f.closed(1)[0]
			recordtest.Equal(t, "frames", show(s.Frames), "request< POST /v1/messages {\"prompt\":\"x\"}\n")
			if facts, _ := source.ParseResponseInfo(s.State); facts.Failure != source.FailureNone || facts.Status != 502 || facts.Reason == "" {
				t.Errorf("facts %s", s.State)
			}
		})
	}
}

// TestUnansweredDelaysNoOther: exchanges beside one that waits for its response do not wait for it.
func TestUnansweredDelaysNoOther(t *testing.T) {
	f := start(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		if r.URL.Path == "/slow" {
			<-r.Context().Done()
			return
		}
		w.Header().Set("Content-Type", "application/json")
		_, _ = io.WriteString(w, "{}")
	}), atOnce)
	r := f.request("POST", "/slow", strings.NewReader("{}"))
	ctx, cancel := context.WithCancel(r.Context())
	done := make(chan struct{})
	go func() {
		defer close(done)
		_, _ = f.client.Do(r.WithContext(ctx))
	}()
	f.recorded(0, 1)
	began := time.Now()
	const others = 20
	for n := range others {
		f.do(f.request("POST", "/fast", strings.NewReader("{}")))
		f.recorded(n+1, 3)
	}
	if took := time.Since(began); took > others*patience/2 {
		t.Errorf("%d others took %s", others, took)
	}
	cancel()
	<-done
	f.closed(others + 1)
}
