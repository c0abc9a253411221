package host

import (
	"context"
	"errors"
	"fmt"
	"io/fs"

	"google.golang.org/grpc"

	"github.com/earshot-dev/earshot/core/internal/plane"
	"github.com/earshot-dev/earshot/core/internal/wire"
)

// Decode opens an RPC on which the decoders of some streams work, one after another. RPCs
// run side by side.
func (p *Process) Decode(ctx context.Context) (*RPC, error) {
	ctx, cancel := context.WithCancel(ctx)
	c, err := p.dial(ctx)
	if err != nil {
		cancel()
		return nil, fmt.Errorf("decoder %s: open Decode: %w", p.settings.Name, err)
	}
	return &RPC{name: p.settings.Name, carrier: c, cancel: cancel}, nil
}

// dial opens a Decode call on the process's own socket for them, or over gRPC when it does not listen there.
func (p *Process) dial(ctx context.Context) (carrier, error) {
	if p.socket != "" {
		c, err := plane.Dial(ctx, p.socket, p.pid)
		if err == nil {
			context.AfterFunc(ctx, c.Close)
			return c, nil
		}
		if !errors.Is(err, fs.ErrNotExist) {
			p.settings.Logger.Warn("decoder is not reached at its socket, but over gRPC", "decoder", p.settings.Name, "error", err)
		}
	}
	s, err := p.conn.NewStream(ctx, &grpc.StreamDesc{ClientStreams: true, ServerStreams: true}, wire.Method)
	if err != nil {
		return nil, err
	}
	return overGRPC{s}, nil
}

// carrier carries the requests and responses of one Decode call. It ends with the context in which it
// was opened.
type carrier interface {
	Send(*wire.Request) error
	Recv(*wire.Response) error
	CloseSend() error
}

var (
	_ carrier = (*plane.Conn)(nil)
	_ carrier = overGRPC{}
)

type overGRPC struct{ grpc.ClientStream }

func (s overGRPC) Send(r *wire.Request) error  { return s.SendMsg(r) }
func (s overGRPC) Recv(r *wire.Response) error { return s.RecvMsg(r) }

// RPC is one Decode call. One goroutine sends and another receives: the process may answer before it
// takes the next request.
type RPC struct {
	name    string
	carrier carrier
	cancel  context.CancelFunc
}

// OverGRPC reports whether the call is one of gRPC, and has no socket of its own.
func (c *RPC) OverGRPC() bool {
	_, is := c.carrier.(overGRPC)
	return is
}

// Send sends a request. The buffers of its batches must stay as they are until the response
// is received. An error ends the call.
func (c *RPC) Send(r *wire.Request) error {
	if err := c.carrier.Send(r); err != nil {
		c.cancel()
		return fmt.Errorf("decoder %s: send: %w", c.name, err)
	}
	return nil
}

// Recv receives the response to the next request, which is valid until the Recv after it.
func (c *RPC) Recv(r *wire.Response) error {
	if err := c.carrier.Recv(r); err != nil {
		return fmt.Errorf("decoder %s: receive: %w", c.name, err)
	}
	return nil
}

// CloseSend ends the requests.
func (c *RPC) CloseSend() error { return c.carrier.CloseSend() }

// Close ends the call; requests in flight are lost.
func (c *RPC) Close() { c.cancel() }
