package host

import (
	"os"
	"testing"

	"github.com/earshot-dev/earshot/bench/gen"
	"github.com/earshot-dev/earshot/core/frame"
	"github.com/earshot-dev/earshot/core/internal/wire"
	"github.com/earshot-dev/earshot/core/sandbox"
)

// BenchmarkCell compares a decoder in a cell with one outside: the time until it has described
// itself, and the processor time of a frame.
func BenchmarkCell(b *testing.B) {
	settings := func(b *testing.B, cell []string) Settings {
		return Settings{Name: "legion", Path: os.Args[0], Args: []string{"decoder"}, SocketDir: b.TempDir(), Cell: cell}
	}
	_, data, _ := gen.Legion(gen.Options{Sessions: 1, Bytes: 8e6, Seed: 1}).Session(0)
	for name, cell := range map[string][]string{"none": nil, "cell": {"cell"}} {
		b.Run("start/"+name, func(b *testing.B) {
			s := settings(b, cell)
			for b.Loop() {
				p, err := Start(b.Context(), s)
				if err != nil {
					b.Fatal(err)
				}
				p.Abort()
			}
		})
		b.Run("decode/"+name, func(b *testing.B) {
			p, err := Start(b.Context(), settings(b, cell))
			if err != nil {
				b.Fatal(err)
			}
			defer p.Kill()
			l, err := p.Decode(b.Context())
			if err != nil {
				b.Fatal(err)
			}
			defer l.Close()
			batches, id := cut(data, 512), uint64(0)
			var res wire.Result
			measure(b, data, batches, p.Pid(), func() error {
				id++
				return through(l, id, batches, laneDepth, &res)
			})
		})
	}
}

// TestCallsInACell: a decoder in a cell serves Decode at its socket, also as the first process of a PID namespace, where it
// has another number than for us.
func TestCallsInACell(t *testing.T) {
	for name, s := range map[string]Settings{
		"cell": {}, "processes": {Rules: sandbox.Rules{Processes: true}}, "off": {Off: true},
	} {
		s.Cell = []string{"cell"}
		c := openCall(t, startAs(t, s, "decoder"))
		if c.OverGRPC() {
			t.Errorf("%s: over gRPC", name)
		}
		var res wire.Result
		data := []byte("{}\n")
		if err := through(c, 1, []*frame.Batch{{Data: data, Frames: []frame.Frame{{Data: data[:2]}}}}, 1, &res); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}
