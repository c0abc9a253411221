package tap

import (
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/earshot-dev/earshot/core/frame"
	"github.com/earshot-dev/earshot/core/internal/source"
	"github.com/earshot-dev/earshot/core/internal/source/recordtest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// fixture is a tap between a client and an agent server.
type fixture struct {
	*testing.T
	tap      *Tap
	rec      *recordtest.Recorder
	upstream *httptest.Server
	client   *http.Client
	url      string // of the tap
	stop     func()
}

// start starts a tap in front of the handler.
func start(t *testing.T, h http.Handler, change ...func(*Settings)) *fixture {
	t.Helper()
	up := httptest.NewUnstartedServer(h)
	up.Config.Protocols = protocols(true, true, true)
	up.Config.DisableGeneralOptionsHandler = true
	up.Start()
	t.Cleanup(up.Close)
	f := startAt(t, up.URL, change...)
	f.upstream = up
	return f
}

// startAt starts a tap in front of an upstream.
func startAt(t *testing.T, upstream string, change ...func(*Settings)) *fixture {
	t.Helper()
	s := Settings{Env: source.Env{Name: "agent", Format: "fmt"}, Config: Config{Listen: "127.0.0.1:0", Upstream: upstream}, Grace: 100 * time.Millisecond}
	for _, c := range change {
		c(&s)
	}
	tap, err := New(s)
	if err != nil {
		t.Fatal(err)
	}
	f := &fixture{T: t, tap: tap, rec: recordtest.New()}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- tap.Run(ctx, f.rec) }()
	transport := &http.Transport{DisableCompression: true, MaxIdleConnsPerHost: 100}
	f.client = &http.Client{Transport: transport, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	stopped := false
	f.stop = func() {
		if stopped {
			return
		}
		stopped = true
		transport.CloseIdleConnections()
		cancel()
		if err := <-done; err != nil {
			t.Errorf("run: %v", err)
		}
		if free := tap.memory.free.Load(); free != tap.MaxMemory {
			t.Errorf("%d bytes of memory were not given back", tap.MaxMemory-free)
		}
	}
	t.Cleanup(f.stop)
	addr := tap.Addr(f.deadline())
	if addr == nil {
		t.Fatal("the tap does not listen")
	}
	scheme := "http://"
	if s.ServerTLS != nil {
		scheme = "https://"
	}
	f.url = scheme + addr.String()
	return f
}

// deadline is how long a test waits for anything: minutes, because with the race detector, beside other tests, some take more than one.
func (f *fixture) deadline() context.Context {
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Minute)
	f.Cleanup(cancel)
	return ctx
}

// do sends a request and returns the response and its body.
func (f *fixture) do(r *http.Request) (*http.Response, string) {
	f.Helper()
	res, err := f.client.Do(r)
	if err != nil {
		f.Fatal(err)
	}
	defer res.Body.Close()
	b, err := io.ReadAll(res.Body)
	if err != nil {
		f.Fatal(err)
	}
	return res, string(b)
}

func (f *fixture) request(method, path string, body io.Reader) *http.Request {
	f.Helper()
	r, err := http.NewRequestWithContext(f.deadline(), method, f.url+path, body)
	if err != nil {
		f.Fatal(err)
	}
	return r
}

// closed waits until n streams have been recorded and closed.
func (f *fixture) closed(n int) []recordtest.Stream {
	f.Helper()
	s, ok := f.rec.Wait(f.deadline(), func(all []recordtest.Stream) bool {
		done := 0
		for _, s := range all {
			if s.Closed {
				done++
			}
		}
		return done >= n
	})
	if !ok || len(s) != n {
		f.Fatalf("%d streams, want %d closed: %+v", len(s), n, s)
	}
	return s
}

// show writes frames as short text.
func show(frames []frame.Frame) string {
	out := ""
	for _, fr := range frames {
		out += fr.Kind.String()
		if fr.FromClient {
			out += "<"
		}
		if fr.Name != "" {
			out += " " + fr.Name
		}
		if fr.ID != "" {
			out += " #" + fr.ID
		}
		out += " " + string(fr.Data)
		if fr.Reason != "" {
			out += " !" + fr.Reason
		}
		out += "\n"
	}
	return out
}
