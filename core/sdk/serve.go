// Package sdk makes a decoder a process that Earshot can run.
//
//	package main
//
//	func main() { sdk.Serve(acme.New()) }
//
// An author needs this package and its imports decoder, frame and msg; the packages below
// it, from conversation to when, are shared by our own decoders. Requests with frames enter
// the process and responses with messages leave it, in the protocol of
// core/proto/PROTOCOL.md, which is open to any language.
package sdk

import (
	"context"
	"errors"
	"io"
	"net"
	"os"

	"github.com/hashicorp/go-hclog"
	goplugin "github.com/hashicorp/go-plugin"
	"google.golang.org/grpc"

	"github.com/earshot-dev/earshot/core/decoder"
	"github.com/earshot-dev/earshot/core/internal/plane"
	"github.com/earshot-dev/earshot/core/internal/wire"
)

// Serve serves decoders of the factory until the host closes the connection. In a process
// that was not started by Earshot it prints a notice and exits with status 1.
func Serve(f decoder.Factory) {
	log := hclog.New(&hclog.LoggerOptions{Name: f.Info().Name, Output: os.Stderr, Level: hclog.Info, JSONFormat: true})
	if path := os.Getenv(plane.Env); path != "" {
		// It ends with the process.
		if _, err := plane.Serve(path, func(c plane.Call) { decodeOver(c, f, log) }); err != nil {
			log.Warn("no socket for Decode, the host uses gRPC", "error", err)
		}
	}
	goplugin.Serve(ServeConfig(f, log))
}

// decodeOver answers a call on a socket of its own. A host that breaks it off needs no log line.
func decodeOver(c plane.Call, f decoder.Factory, log hclog.Logger) {
	var broken *net.OpError
	if err := serve(f, c); err != nil && !errors.As(err, &broken) && !errors.Is(err, io.ErrUnexpectedEOF) {
		log.Error("a Decode call has ended", "error", err)
	}
}

// ServeConfig is Serve's configuration for go-plugin; tests serve it in their own process.
func ServeConfig(f decoder.Factory, log hclog.Logger) *goplugin.ServeConfig {
	return &goplugin.ServeConfig{
		HandshakeConfig: wire.Handshake(),
		Plugins:         goplugin.PluginSet{wire.PluginName: &Plugin{Factory: f}},
		Logger:          log,
		GRPCServer: func(opts []grpc.ServerOption) *grpc.Server {
			return grpc.NewServer(append(opts, ServerOptions()...)...)
		},
	}
}

// ServerOptions are the gRPC options of a decoder process: the codec, and the
// message limits that gRPC would otherwise set to 4 MiB.
func ServerOptions() []grpc.ServerOption {
	return []grpc.ServerOption{
		grpc.ForceServerCodecV2(wire.NewCodec()),
		grpc.MaxRecvMsgSize(wire.MaxMessage),
		grpc.MaxSendMsgSize(wire.MaxMessage),
		grpc.InitialWindowSize(1 << 20),
		grpc.InitialConnWindowSize(2 << 20),
		grpc.ReadBufferSize(256 << 10),
		grpc.WriteBufferSize(256 << 10),
	}
}

// Plugin is the server's half of the go-plugin glue.
type Plugin struct {
	goplugin.NetRPCUnsupportedPlugin
	Factory decoder.Factory
}

var _ goplugin.GRPCPlugin = (*Plugin)(nil)

// GRPCServer implements goplugin.GRPCPlugin.
func (p *Plugin) GRPCServer(_ *goplugin.GRPCBroker, s *grpc.Server) error {
	Register(s, p.Factory)
	return nil
}

// GRPCClient implements goplugin.GRPCPlugin; the client's half is the host's.
func (p *Plugin) GRPCClient(context.Context, *goplugin.GRPCBroker, *grpc.ClientConn) (any, error) {
	return nil, errors.New("sdk: a decoder process has no client")
}
