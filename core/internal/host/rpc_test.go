//go:build unix

package host

import (
	"bytes"
	"context"
	"encoding/binary"
	"fmt"
	"log/slog"
	"net"
	"os"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/hashicorp/go-hclog"
	goplugin "github.com/hashicorp/go-plugin"

	"github.com/earshot-dev/earshot/bench/gen"
	"github.com/earshot-dev/earshot/core/frame"
	"github.com/earshot-dev/earshot/core/internal/plane"
	"github.com/earshot-dev/earshot/core/internal/wire"
	"github.com/earshot-dev/earshot/core/sdk"
	"github.com/earshot-dev/earshot/plugins/legion"
)

// besideGRPC is the test binary as a decoder that serves gRPC, and does something of its own at the
// socket for Decode calls.
func besideGRPC(how string) bool {
	path := os.Getenv(plane.Env)
	answer := func(b []byte) {
		l, err := net.Listen("unix", path)
		if err != nil {
			panic(err)
		}
		go func() {
			for {
				c, err := l.Accept()
				if err != nil {
					return
				}
				_, _ = c.Write(b)
				_, _ = c.Read(make([]byte, 1))
			}
		}()
	}
	switch how {
	case "older": // it does not know of the socket
	case "elsewhere": // a link to a server that is not the decoder's
		if err := os.Symlink(os.Args[2], path); err != nil {
			panic(err)
		}
	case "announces":
		answer(binary.BigEndian.AppendUint32(nil, wire.MaxMessage))
	case "exceeds":
		answer(binary.BigEndian.AppendUint32(nil, wire.MaxMessage+1))
	case "breaks off":
		answer([]byte("\x00\x00\x10\x00abc"))
		time.AfterFunc(300*time.Millisecond, func() { os.Exit(3) })
	default:
		return false
	}
	goplugin.Serve(sdk.ServeConfig(legion.New(), hclog.NewNullLogger()))
	return true
}

func startAs(t *testing.T, s Settings, args ...string) *Process {
	t.Helper()
	s.Name, s.Path, s.Args, s.SocketDir = "legion", os.Args[0], args, t.TempDir()
	p, err := Start(t.Context(), s)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		p.Abort()
		if left, err := os.ReadDir(s.SocketDir); err != nil || len(left) > 0 {
			t.Errorf("left: %v, %v", left, err)
		}
	})
	return p
}

func openCall(t *testing.T, p *Process) *RPC {
	t.Helper()
	c, err := p.Decode(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	return c
}

// TestBothWaysAreTheSame: the same bytes answer the same requests, whether a call has a socket of its own
// or is one of gRPC.
func TestBothWaysAreTheSame(t *testing.T) {
	_, data, _ := gen.Legion(gen.Options{Sessions: 1, Bytes: 1e6, Seed: 1, Broken: 0.01}).Session(0)
	var answers [2][]byte
	for i, over := range []bool{false, true} {
		c := openCall(t, startAs(t, Settings{GRPC: over}, "decoder"))
		if c.OverGRPC() != over {
			t.Errorf("over gRPC is %t, not %t", c.OverGRPC(), over)
		}
		batches := cut(data, 100)
		var resp wire.Response
		for j, b := range batches {
			r := wire.Batch{Stream: 1, Data: b.Data, Frames: b.Frames, Flush: j%2 == 0, Snapshot: j%3 == 0, Close: j == len(batches)-1}
			if j == 0 {
				r.Open = &wire.Open{Origin: "x"}
			}
			if err := c.Send(&wire.Request{Batches: []wire.Batch{r}}); err != nil {
				t.Fatal(err)
			}
			if err := c.Recv(&resp); err != nil {
				t.Fatal(err)
			}
			answers[i] = append(answers[i], resp.Bytes()...)
		}
	}
	if len(answers[0]) == 0 || !slices.Equal(answers[0], answers[1]) {
		t.Errorf("%d bytes over a socket, %d over gRPC", len(answers[0]), len(answers[1]))
	}
}

// TestWhoIsSpokenToOverGRPC: a decoder that does not listen at the socket, one of which the connection is encrypted, and on Linux one
// whose socket is another program's, which receives nothing, and is logged.
func TestWhoIsSpokenToOverGRPC(t *testing.T) {
	path := t.TempDir() + "/other"
	l, err := net.Listen("unix", path)
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	received := make(chan int, 1)
	go func() {
		c, err := l.Accept()
		if err != nil {
			return
		}
		defer c.Close()
		n, _ := c.Read(make([]byte, 100))
		received <- n
	}()
	for name, s := range map[string]Settings{"older": {}, "encrypted": {AutoMTLS: true}, "elsewhere": {}} {
		args := map[string][]string{"older": {"older"}, "encrypted": {"decoder"}, "elsewhere": {"elsewhere", path}}[name]
		if name == "elsewhere" && runtime.GOOS != "linux" {
			continue
		}
		var log bytes.Buffer
		s.Logger = slog.New(slog.NewTextHandler(&log, nil))
		c := openCall(t, startAs(t, s, args...))
		if !c.OverGRPC() {
			t.Errorf("%s: not over gRPC", name)
		}
		if got := strings.Contains(log.String(), "not reached at its socket"); got != (name == "elsewhere") {
			t.Errorf("%s: %s", name, log.String())
		}
		var res wire.Result
		data := []byte("{}\n")
		if err := through(c, 1, []*frame.Batch{{Data: data, Frames: []frame.Frame{{Data: data[:2]}}}}, 1, &res); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	if runtime.GOOS == "linux" {
		if n := <-received; n != 0 {
			t.Errorf("another program's server received %d bytes", n)
		}
	}
}

// TestHostileAnswers end the call, with little memory; an answer that does not come ends with the caller's patience.
func TestHostileAnswers(t *testing.T) {
	for how, want := range map[string]string{"exceeds": "the limit is", "breaks off": "unexpected EOF", "announces": "closed"} {
		c := openCall(t, startAs(t, Settings{}, how))
		if c.OverGRPC() {
			t.Fatalf("%s: over gRPC", how)
		}
		if how == "announces" {
			defer time.AfterFunc(100*time.Millisecond, c.Close).Stop()
		}
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		var resp wire.Response
		err := c.Recv(&resp)
		runtime.ReadMemStats(&after)
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", how, err)
		}
		if n := after.TotalAlloc - before.TotalAlloc; n > 4<<20 {
			t.Errorf("%s: %d bytes were allocated", how, n)
		}
	}
}

// TestKilledWithinACall: the call of a decoder that is killed ends at once, for the sender and the receiver.
func TestKilledWithinACall(t *testing.T) {
	p := startAs(t, Settings{}, "decoder")
	c := openCall(t, p)
	if c.OverGRPC() {
		t.Fatal("over gRPC")
	}
	send := flood(c)
	var resp wire.Response
	if err := c.Recv(&resp); err != nil {
		t.Fatal(err)
	}
	if err := syscall.Kill(p.Pid(), syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	if how, killed := p.Died(); how != "signal: killed" || !killed {
		t.Errorf("it died of %q", how)
	}
	var err error
	for err == nil {
		err = c.Recv(&resp)
	}
	if err := <-send; err == nil {
		t.Error("requests to a process that has ended were sent")
	}
}

// TestStoppedWithinACall: a decoder that does not go on blocks both sides until the call is closed, or its context ends.
func TestStoppedWithinACall(t *testing.T) {
	for _, byContext := range []bool{false, true} {
		p := startAs(t, Settings{}, "decoder")
		ctx, cancel := context.WithCancel(t.Context())
		c, err := p.Decode(ctx)
		if err != nil {
			t.Fatal(err)
		}
		var resp wire.Response
		if err := syscall.Kill(p.Pid(), syscall.SIGSTOP); err != nil {
			t.Fatal(err)
		}
		send, received := flood(c), make(chan error, 1)
		go func() { received <- c.Recv(&resp) }()
		select {
		case err := <-send:
			t.Fatal("sent:", err)
		case err := <-received:
			t.Fatal("received:", err)
		case <-time.After(100 * time.Millisecond):
		}
		if byContext {
			cancel()
		} else {
			c.Close()
		}
		for _, end := range []<-chan error{send, received} {
			if err := <-end; err == nil {
				t.Error("no error of a call that was closed")
			}
		}
		cancel()
	}
}

// TestRequestOverTheLimit: one that is longer than a message may be is an error, with which the call ends.
func TestRequestOverTheLimit(t *testing.T) {
	c := openCall(t, startAs(t, Settings{}, "decoder"))
	data := make([]byte, wire.MaxMessage/4)
	r := &wire.Request{}
	for range 5 {
		r.Batches = append(r.Batches, wire.Batch{Stream: 1, Data: data})
	}
	if err := c.Send(r); err == nil || !strings.Contains(err.Error(), "decoder legion: send: ") || !strings.Contains(err.Error(), "the limit is") {
		t.Errorf("sent: %v", err)
	}
	if err := c.Recv(new(wire.Response)); err == nil || !strings.Contains(err.Error(), "decoder legion: receive: ") {
		t.Errorf("received: %v", err)
	}
}

// flood sends requests until there is an error, which it returns.
func flood(c *RPC) <-chan error {
	data := []byte(strings.Repeat(fmt.Sprintln(`{"type":"unknown"}`), 20000))
	b := cut(data, 20000)[0]
	end := make(chan error, 1)
	go func() {
		for {
			if err := c.Send(&wire.Request{Batches: []wire.Batch{{Stream: 1, Open: &wire.Open{Origin: "x"}, Data: b.Data, Frames: b.Frames}}}); err != nil {
				end <- err
				return
			}
		}
	}()
	return end
}
