package plugins_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/earshot-dev/earshot/core/decoder"
	"github.com/earshot-dev/earshot/core/decoder/conformance"
	"github.com/earshot-dev/earshot/core/decoder/decodertest"
	"github.com/earshot-dev/earshot/core/frame"
	"github.com/earshot-dev/earshot/core/msg"
	"github.com/earshot-dev/earshot/plugins"
)

// TestRepeatedRequests: a client of OTLP repeats a request whose answer it has not seen, at once or after
// others. No decoder of telemetry has a row more for it.
func TestRepeatedRequests(t *testing.T) {
	for _, format := range []string{"claude-code-otel", "codex-otel", "copilot-otel", "gemini-otel", "otel-genai"} {
		cases, err := conformance.Load(os.DirFS(filepath.Join(format, "testdata")))
		if err != nil {
			t.Fatal(err)
		}
		for _, c := range cases {
			var twice []frame.Frame
			for _, f := range c.Frames {
				twice = append(twice, f, f)
			}
			once := rows(t, format, c.Stream, c.Frames)
			for name, frames := range map[string][]frame.Frame{"at once": twice, "later": append(c.Frames[:len(c.Frames):len(c.Frames)], c.Frames...)} {
				if d := cmp.Diff(once, rows(t, format, c.Stream, frames)); d != "" {
					t.Errorf("%s/%s, repeated %s (-once +repeated):\n%s", format, c.Name, name, d)
				}
			}
		}
	}
}

// rows are the kinds, keys and attributes of a stream's rows.
func rows(t *testing.T, format string, s decoder.Stream, frames []frame.Frame) map[string]msg.Kind {
	t.Helper()
	got := make(map[string]msg.Kind)
	for _, m := range msg.Fold(decodertest.Decode(t, plugins.Bundled()[format](), s, frames).Messages) {
		got[m.Session+" "+m.Run+" "+m.Key] = m.Kind
	}
	return got
}
