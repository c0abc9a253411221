package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"time"

	"github.com/spf13/cobra"

	"github.com/earshot-dev/earshot/core/frame"
	"github.com/earshot-dev/earshot/core/frame/fixture"
	"github.com/earshot-dev/earshot/core/replay"
)

func newReplay() *cobra.Command {
	var o replayOptions
	c := &cobra.Command{
		Use:   "replay FILE",
		Short: "Play recorded traffic, as frames or as an agent's server",
		Long: `Play a recording at its own pace: to stdout as frames, or, with --serve, as a server
that answers every request with it: GET and POST with the event stream, lines or
document that was recorded, a WebSocket handshake with its messages. A client that
names a Last-Event-ID is served from behind that event.

FILE is one of record, or of any kind that decode reads; only recordings have times.`,
		Example: `  earshot replay agno.frames.jsonl --speed 10 | earshot decode --format agno --transport frames -
  earshot replay agno.frames.jsonl --serve 127.0.0.1:7777`,
		Args: cobra.ExactArgs(1),
		RunE: func(c *cobra.Command, args []string) error { return o.run(c, args[0]) },
	}
	c.Flags().Float64Var(&o.speed, "speed", 1, "`N` times as fast as it was; 0 makes no pauses")
	c.Flags().StringVar(&o.serve, "serve", "", "`ADDR` to serve it on; port 0 takes a free one")
	return c
}

type replayOptions struct {
	speed float64
	serve string
}

func (o *replayOptions) run(c *cobra.Command, path string) error {
	if o.speed < 0 {
		return usageError{fmt.Errorf("--speed %v: must not be negative", o.speed)}
	}
	open := func() (replay.Frames, io.Closer, error) { return openRecording(path) }
	in, file, err := open()
	if err != nil {
		return err
	}
	defer file.Close()
	if o.serve != "" {
		return o.server(c, open)
	}
	out := bufio.NewWriter(rawOutput(c.OutOrStdout()))
	var line []byte
	err = replay.Play(c.Context(), in, o.speed, func(f *frame.Frame) error {
		if line, err = fixture.AppendFrame(line[:0], f); err != nil {
			return err
		}
		if _, err := out.Write(line); err != nil || o.speed == 0 {
			return err
		}
		return out.Flush()
	})
	if errors.Is(err, context.Canceled) { // interrupted
		err = nil
	}
	return errors.Join(err, out.Flush())
}

func openRecording(path string) (replay.Frames, io.Closer, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, nil, err
	}
	t, err := fixture.TransportOf(path)
	if err != nil {
		f.Close()
		return nil, nil, usageError{err}
	}
	in, err := fixture.NewReader(f, t)
	if err != nil {
		return nil, nil, errors.Join(err, f.Close())
	}
	return in, f, nil
}

// server serves the recording until it is interrupted.
func (o *replayOptions) server(c *cobra.Command, open func() (replay.Frames, io.Closer, error)) error {
	l, err := (&net.ListenConfig{}).Listen(c.Context(), "tcp", o.serve)
	if err != nil {
		return usageError{err}
	}
	log := c.ErrOrStderr()
	s := &http.Server{
		Handler: &replay.Server{Open: open, Speed: o.speed, Done: func(r *http.Request, frames int, err error) {
			fmt.Fprintf(log, "%s %s: %d frames", r.Method, r.URL.Path, frames)
			if err != nil {
				fmt.Fprintf(log, ", %v", err)
			}
			fmt.Fprintln(log)
		}},
		ReadHeaderTimeout: 10 * time.Second,
		BaseContext:       func(net.Listener) context.Context { return c.Context() },
	}
	fmt.Fprintf(c.OutOrStdout(), "http://%s\n", l.Addr())
	stop := context.AfterFunc(c.Context(), func() { _ = s.Close() })
	defer stop()
	if err := s.Serve(l); !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return nil
}
