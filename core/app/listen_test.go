package app

import (
	"log/slog"
	"os"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/earshot-dev/earshot/core/config"
	"github.com/earshot-dev/earshot/core/internal/source"
	"github.com/earshot-dev/earshot/core/internal/source/poll"
	"github.com/earshot-dev/earshot/core/internal/source/push"
	"github.com/earshot-dev/earshot/core/internal/source/sse"
	"github.com/earshot-dev/earshot/core/internal/source/tap"
	"github.com/earshot-dev/earshot/core/internal/source/websocket"
	"github.com/earshot-dev/earshot/core/internal/telemetry"
)

const listeners = `
sources:
  - name: t
    type: tap
    listen: "127.0.0.1:7801"
    upstream: "http://127.0.0.1:7777/base"
    max_body: 1MiB
    routes: [{path: "/v1/**", host: h, content_type: application/json, format: f1}]
  - {name: s, type: sse, format: f2, url: "http://h/x", method: POST, headers: {Authorization: "Bearer x"}, body: "b", resume: agno}
  - {name: w, type: websocket, format: f3, url: "ws://h/x", headers: {Cookie: c}, subprotocols: [a], send: [hi], resume: "from {{n}}"}
  - {name: p, type: http, format: f4, listen: "127.0.0.1:7802", path: /in, token: secret, max_body: 2MiB}
  - {name: q, type: poll, format: f5, url: "http://h/y", method: POST, headers: {Accept: z}, body: "{}", interval: 7s, pages: letta}
`

// What a tap has done is among the metrics.
func TestTapIsCounted(t *testing.T) {
	listener, err := tap.New(tap.Settings{Name: "t", Listen: "127.0.0.1:0", Upstream: "http://127.0.0.1:7777", Format: "f"})
	if err != nil {
		t.Fatal(err)
	}
	r := &runner{metrics: telemetry.New()}
	r.count("t", listener)
	families, err := r.metrics.Registry().Gather()
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
	c, err := config.Parse("test.yaml", []byte(listeners), os.LookupEnv)
	if err != nil {
		t.Fatal(err)
	}
	r := &runner{Settings: Settings{Config: c, Logger: slog.New(slog.DiscardHandler)}}
	var all []source.Listener
	for i := range c.Sources {
		l, err := r.listen(&c.Sources[i])
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, l)
	}
	want := []struct {
		got  any
		want any
	}{
		{all[0].(*tap.Tap).Settings, tap.Settings{
			Name: "t", Listen: "127.0.0.1:7801", Upstream: "http://127.0.0.1:7777/base", MaxBody: 1 << 20, Loops: r.loops,
			Routes: []tap.Route{{Path: "/v1/**", Host: "h", ContentType: "application/json", Format: "f1"}},
		}},
		{all[1].(*sse.Client).Settings, sse.Settings{
			Name: "s", Format: "f2", URL: "http://h/x", Method: "POST", Headers: map[string]string{"Authorization": "Bearer x"}, Body: "b", Resume: sse.AGNO,
		}},
		{all[2].(*websocket.Client).Settings, websocket.Settings{
			Name: "w", Format: "f3", URL: "ws://h/x", Headers: map[string]string{"Cookie": "c"}, Subprotocols: []string{"a"}, Send: []string{"hi"}, Resume: "from {{n}}",
		}},
		{all[3].(*push.Server).Settings, push.Settings{
			Name: "p", Format: "f4", Listen: "127.0.0.1:7802", Path: "/in", Token: "secret", MaxBody: 2 << 20,
		}},
		{all[4].(*poll.Poller).Settings, poll.Settings{
			Name: "q", Format: "f5", URL: "http://h/y", Method: "POST", Headers: map[string]string{"Accept": "z"}, Body: "{}", Interval: 7 * time.Second, Pages: poll.Letta,
		}},
	}
	for _, w := range want {
		got, expected := reflect.ValueOf(w.got), reflect.ValueOf(w.want)
		for i := range expected.NumField() {
			f := expected.Type().Field(i)
			// What the configuration does not say is a default of the listener.
			if f.PkgPath != "" || expected.Field(i).IsZero() {
				continue
			}
			if !reflect.DeepEqual(got.Field(i).Interface(), expected.Field(i).Interface()) {
				t.Errorf("%s.%s: %v, want %v", expected.Type(), f.Name, got.Field(i), expected.Field(i))
			}
		}
	}
	if _, err := r.listen(&config.Source{Type: config.TypeFile}); err == nil {
		t.Error("a file is no listener")
	}
}
