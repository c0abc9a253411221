package host

import (
	"bytes"
	"fmt"
	"os"
	"sync"
	"testing"

	"go.uber.org/goleak"

	"github.com/earshot-dev/earshot/bench/gen"
	"github.com/earshot-dev/earshot/bench/proc"
	"github.com/earshot-dev/earshot/core/decoder"
	"github.com/earshot-dev/earshot/core/frame"
	"github.com/earshot-dev/earshot/core/internal/wire"
	"github.com/earshot-dev/earshot/core/sdk"
	"github.com/earshot-dev/earshot/plugins/legion"
)

// The test binary is its own decoder process.
func TestMain(m *testing.M) {
	if len(os.Args) > 1 && os.Args[1] == "decoder" {
		sdk.Serve(legion.New())
		return
	}
	if len(os.Args) > 1 && besideGRPC(os.Args[1]) {
		return
	}
	if len(os.Args) > 2 && other(os.Args[1], os.Args[2]) {
		return
	}
	goleak.VerifyTestMain(m)
}

// laneDepth is how many requests a lane of the pipeline has under way.
const laneDepth = 4

// BenchmarkDecode decodes the same session in this process, and in one of its own by
// the number of frames in a batch: with one request under way, as a call is, and with
// as many as the pipeline streams. cpu-ns/frame is the processor time of both sides,
// which is a better measure than the time on a machine with other work.
func BenchmarkDecode(b *testing.B) {
	_, data, _ := gen.Legion(gen.Options{Sessions: 1, Bytes: 8e6, Seed: 1}).Session(0)
	b.Run("inprocess", func(b *testing.B) {
		batches := cut(data, 512)
		var out decoder.Output
		measure(b, data, batches, 0, func() error {
			d, err := legion.New().New(decoder.Stream{Origin: "x"})
			if err != nil {
				return err
			}
			for _, batch := range batches {
				out.Reset()
				for i := range batch.Frames {
					out.Begin(int32(i))
					if err := d.Decode(&batch.Frames[i], &out); err != nil {
						return err
					}
				}
			}
			return nil
		})
	})
	for _, mtls := range []bool{false, true} {
		for _, ahead := range []int{1, laneDepth} {
			for _, n := range []int{1, 64, 512, 4096} {
				b.Run(fmt.Sprintf("process/mtls=%t/ahead=%d/batch=%d", mtls, ahead, n), func(b *testing.B) {
					p, err := Start(b.Context(), Settings{Name: "legion", Path: os.Args[0], Args: []string{"decoder"}, SocketDir: b.TempDir(), AutoMTLS: mtls})
					if err != nil {
						b.Fatal(err)
					}
					defer p.Kill()
					l, err := p.Decode(b.Context())
					if err != nil {
						b.Fatal(err)
					}
					defer l.Close()
					batches, id := cut(data, n), uint64(0)
					var res wire.Result
					measure(b, data, batches, p.Pid(), func() error {
						id++
						return through(l, id, batches, ahead, &res)
					})
				})
			}
		}
	}
}

// TestBoundaryAllocates bounds the allocations of a frame at the boundary: strings of a batch
// share an allocation, and contents are returned as ranges of the frame.
func TestBoundaryAllocates(t *testing.T) {
	_, data, _ := gen.Legion(gen.Options{Sessions: 1, Bytes: 2e6, Seed: 1}).Session(0)
	p, err := Start(t.Context(), Settings{Name: "legion", Path: os.Args[0], Args: []string{"decoder"}, SocketDir: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	defer p.Kill()
	l, err := p.Decode(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	batches, id, frames := cut(data, 512), uint64(0), 0
	for _, b := range batches {
		frames += len(b.Frames)
	}
	var res wire.Result
	n := testing.AllocsPerRun(5, func() {
		id++
		if err := through(l, id, batches, 1, &res); err != nil {
			t.Fatal(err)
		}
	})
	if per := n / float64(frames); per > 1.5 {
		t.Errorf("a frame allocates %.2f times in the sidecar", per)
	}
}

// through has a stream decoded, batch by batch, with so many requests under way.
func through(l *RPC, id uint64, batches []*frame.Batch, ahead int, res *wire.Result) error {
	send := func(i int) error {
		r := wire.Batch{Stream: id, Data: batches[i].Data, Frames: batches[i].Frames, Close: i == len(batches)-1}
		if i == 0 {
			r.Open = &wire.Open{Origin: "x"}
		}
		return l.Send(&wire.Request{Batches: []wire.Batch{r}})
	}
	due, failed := make(chan int, len(batches)), make(chan error, 1)
	var sender sync.WaitGroup
	defer func() { close(due); sender.Wait() }()
	sender.Go(func() { // the process may answer before it takes the next request
		for i := range due {
			if err := send(i); err != nil {
				failed <- err
				return
			}
		}
	})
	sent := 0
	var resp wire.Response
	for i, batch := range batches {
		for ; sent < min(i+ahead, len(batches)); sent++ {
			due <- sent
		}
		if err := l.Recv(&resp); err != nil {
			l.Close()
			select {
			case err = <-failed:
			default:
			}
			return err
		}
		if err := resp.Results(func(raw []byte) error { return res.Read(raw, batch.Data) }); err != nil {
			return err
		}
		if res.Failure != nil {
			return fmt.Errorf("decoder: %s", res.Failure.Error)
		}
		resp.Reset()
	}
	return nil
}

// cut makes batches of n lines of a session.
func cut(data []byte, n int) []*frame.Batch {
	var out []*frame.Batch
	for len(data) > 0 {
		b := &frame.Batch{}
		size := 0
		for len(b.Frames) < n && size < len(data) {
			end := bytes.IndexByte(data[size:], '\n') + 1
			if line := data[size : size+end-1]; len(bytes.TrimSpace(line)) > 0 {
				b.Frames = append(b.Frames, frame.Frame{Data: line})
			}
			size += end
		}
		b.Data, data = data[:size], data[size:]
		if len(b.Frames) > 0 {
			out = append(out, b)
		}
	}
	return out
}

func measure(b *testing.B, data []byte, batches []*frame.Batch, child int, f func() error) {
	frames := 0
	for _, batch := range batches {
		frames += len(batch.Frames)
	}
	b.SetBytes(int64(len(data)))
	b.ReportAllocs()
	before := proc.OwnAnd(child)
	for b.Loop() {
		if err := f(); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(proc.OwnAnd(child)-before)/float64(b.N*frames), "cpu-ns/frame")
	b.ReportMetric(float64(frames), "records/op")
}
