package app

import (
	"log/slog"
	"os"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/earshot-dev/earshot/core/config"
	"github.com/earshot-dev/earshot/core/config/spec"
	"github.com/earshot-dev/earshot/core/decoder"
	"github.com/earshot-dev/earshot/core/internal/source"
	"github.com/earshot-dev/earshot/core/internal/source/poll"
	"github.com/earshot-dev/earshot/core/internal/source/push"
	"github.com/earshot-dev/earshot/core/internal/source/sse"
	"github.com/earshot-dev/earshot/core/internal/source/tap"
	"github.com/earshot-dev/earshot/core/internal/source/websocket"
	"github.com/earshot-dev/earshot/core/internal/telemetry"
	"github.com/earshot-dev/earshot/plugins/agno"
	"github.com/earshot-dev/earshot/plugins/letta"
)

const listeners = `
sources:
  - name: t
    type: tap
    listen: "127.0.0.1:7801"
    upstream: "http://127.0.0.1:7777/base"
    max_body: 1MiB
    routes: [{path: "/v1/**", host: h, content_type: application/json, format: f1}]
  - {name: s, type: sse, format: f2, url: "http://h/x", method: POST, headers: {Authorization: "Bearer x"}, body: "b", resume: last_event_id}
  - {name: w, type: websocket, format: f3, url: "ws://h/x", headers: {Cookie: c}, subprotocols: [a], send: [hi], resume: "from {{n}}"}
  - {name: p, type: http, format: f4, listen: "127.0.0.1:7802", path: /in, token: secret, max_body: 2MiB}
  - {name: q, type: poll, format: f5, url: "http://h/y", method: POST, headers: {Accept: z}, body: "{}", interval: 7s, page_request: {after: after, cursor: id, limit: limit}}
`

// The counts of a tap are among the metrics.
func TestTapIsCounted(t *testing.T) {
	listener, err := tap.New(tap.Settings{Env: source.Env{Name: "t", Format: "f"}, Config: tap.Config{Listen: "127.0.0.1:0", Upstream: "http://127.0.0.1:7777"}})
	if err != nil {
		t.Fatal(err)
	}
	r := &runner{metrics: telemetry.New()}
	countTap(r.metrics, "t", listener)
	families, err := r.metrics.Gather()
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, f := range families {
		if strings.HasPrefix(f.GetName(), "earshot_tap_") {
			got = append(got, f.GetName())
		}
	}
	if want := []string{"earshot_tap_failed_total", "earshot_tap_lost_bytes_total", "earshot_tap_recorded_total", "earshot_tap_requests_total"}; !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
}

// Every key of a listener arrives.
func TestListen(t *testing.T) {
	c, err := config.Types{Sources: SourceTypes()}.Parse("test.yaml", []byte(listeners), os.LookupEnv)
	if err != nil {
		t.Fatal(err)
	}
	r := newRunner(Settings{Config: c, Logger: slog.New(slog.DiscardHandler)}, nil)
	var all []source.Listener
	for i := range c.Sources {
		l, err := c.Sources[i].Section.(source.Live).NewListener(r.env(&c.Sources[i], nil))
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, l)
	}
	want := []struct {
		got  any
		want any
	}{
		{all[0].(*tap.Tap).Settings.Config, tap.Config{
			Listen: "127.0.0.1:7801", Upstream: "http://127.0.0.1:7777/base", MaxBody: 1 << 20,
			Routes: []tap.Route{{Path: "/v1/**", Host: "h", ContentType: "application/json", Format: "f1"}},
		}},
		{all[1].(*sse.Client).Settings.Config, sse.Config{
			URL: "http://h/x", Method: "POST", Headers: spec.Headers{"Authorization": spec.NewSecret("Bearer x")}, Body: "b", Resume: sse.LastEventID,
		}},
		{all[2].(*websocket.Client).Settings.Config, websocket.Config{
			URL: "ws://h/x", Headers: spec.Headers{"Cookie": spec.NewSecret("c")}, Subprotocols: []string{"a"}, Send: []string{"hi"}, Resume: "from {{n}}",
		}},
		{all[3].(*push.Server).Settings.Config, push.Config{
			Listen: "127.0.0.1:7802", Path: "/in", Token: spec.NewSecret("secret"), MaxBody: 2 << 20,
		}},
		{all[4].(*poll.Poller).Settings.Config, poll.Config{
			URL: "http://h/y", Method: "POST", Headers: spec.Headers{"Accept": spec.NewSecret("z")}, Body: "{}", Interval: spec.Duration(7 * time.Second), PageRequest: &poll.Pages{After: "after", Cursor: "id", Limit: "limit", Size: 100},
		}},
	}
	for i, w := range want {
		if diff := cmp.Diff(w.want, w.got); diff != "" {
			t.Error(diff)
		}
		env := reflect.ValueOf(all[i]).Elem().FieldByName("Env").Interface().(source.Env)
		if s := &c.Sources[i]; env.Name != s.Name || env.Format != s.Format || env.Connections != r.connections {
			t.Errorf("%s: %+v", s.Name, env)
		}
	}
}

// The descriptions that the bundled decoders have of their servers are those that sources
// with auto take.
func TestDescribedFormats(t *testing.T) {
	described := map[string]source.Format{}
	for _, f := range []decoder.Factory{agno.New(), letta.New()} {
		info := f.Info()
		described[info.Name] = source.Format{Resume: info.Resume, Pages: info.Pages}
	}
	r := newRunner(Settings{Logger: slog.New(slog.DiscardHandler)}, nil)
	for format := range described {
		for _, section := range []source.Live{
			&sse.Config{URL: "http://h/x", Method: "GET", Resume: sse.Auto},
			&poll.Config{URL: "http://h/x", Method: "GET", Interval: spec.Duration(time.Second), Pages: poll.Auto},
		} {
			if _, err := section.NewListener(r.env(&config.Source{Name: "s", Format: format}, described)); err != nil {
				t.Errorf("%s: %v", format, err)
			}
			if _, err := section.NewListener(r.env(&config.Source{Name: "s", Format: format}, nil)); err == nil {
				t.Errorf("%s: auto without a description", format)
			}
		}
	}
}

// A source of an unknown type is refused.
func TestUnknownType(t *testing.T) {
	r := newRunner(Settings{}, nil)
	if err := r.add(t.Context(), &config.Source{Name: "a", Type: "kafka"}); err == nil || !strings.Contains(err.Error(), "not a source") {
		t.Error(err)
	}
}
