package conformance

import (
	"context"
	"fmt"
	"net"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/test/bufconn"

	"github.com/earshot-dev/earshot/core/decoder"
	"github.com/earshot-dev/earshot/core/frame"
	"github.com/earshot-dev/earshot/core/internal/wire"
	pb "github.com/earshot-dev/earshot/core/proto/earshot/decoder/v1"
	"github.com/earshot-dev/earshot/core/sdk"
)

// GRPC runs the decoders of a factory behind the SDK's gRPC service, client and
// server in this process.
type GRPC struct {
	server *grpc.Server
	client *grpc.ClientConn
	rpc    rpc
	desc   Description
}

var _ Subject = (*GRPC)(nil)

// NewGRPC serves the factory. Close must be called.
func NewGRPC(ctx context.Context, f decoder.Factory) (*GRPC, error) {
	l := bufconn.Listen(256 << 10)
	g := &GRPC{server: grpc.NewServer(sdk.ServerOptions()...)}
	sdk.Register(g.server, f)
	go func() {
		// Serve returns ErrServerStopped after Close.
		_ = g.server.Serve(l)
	}()
	if err := g.dial(ctx, l); err != nil {
		g.Close()
		return nil, fmt.Errorf("grpc: %w", err)
	}
	return g, nil
}

func (g *GRPC) dial(ctx context.Context, l *bufconn.Listener) error {
	var err error
	g.client, err = grpc.NewClient("passthrough:decoder",
		grpc.WithContextDialer(func(ctx context.Context, _ string) (net.Conn, error) { return l.DialContext(ctx) }),
		grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithDefaultCallOptions(grpc.ForceCodecV2(wire.NewCodec()),
			grpc.MaxCallRecvMsgSize(wire.MaxMessage), grpc.MaxCallSendMsgSize(wire.MaxMessage)))
	if err != nil {
		return err
	}
	d := &pb.DescribeResponse{}
	if err := g.client.Invoke(ctx, "/earshot.decoder.v1.Decoder/Describe", &pb.DescribeRequest{}, d); err != nil {
		return fmt.Errorf("describe: %w", err)
	}
	g.desc = Description{
		Where: "grpc",
		Info: decoder.Info{
			Name: d.GetName(), Version: d.GetVersion(), Revision: d.GetRevision(), Summary: d.GetSummary(),
			MetadataFiles: d.GetMetadataFiles(), Documents: d.GetDocuments(), Options: []byte(d.GetOptionsSchema()), Reload: d.GetReload(), LocalIDs: d.GetLocalIds(),
			Resume: []byte(d.GetResume()), Pages: []byte(d.GetPages()), Tables: []byte(d.GetTables()),
		},
		Snapshots: d.GetSnapshots(),
	}
	for _, k := range d.GetTransports() {
		g.desc.Info.Transports = append(g.desc.Info.Transports, frame.Kind(k))
	}
	return nil
}

// Describe implements Subject.
func (g *GRPC) Describe() Description { return g.desc }

// Open implements Subject.
func (g *GRPC) Open(ctx context.Context, s decoder.Stream, snapshot []byte) (Stream, error) {
	if g.rpc.conn == nil || g.rpc.err != nil {
		c, err := newGRPCConn(g.client)
		if err != nil {
			return nil, err
		}
		g.rpc = rpc{conn: c, next: g.rpc.next}
	}
	return g.rpc.open(ctx, s, snapshot)
}

// Close ends the client and the server.
func (g *GRPC) Close() {
	if g.rpc.conn != nil {
		g.rpc.conn.Close()
	}
	if g.client != nil {
		_ = g.client.Close()
	}
	g.server.Stop()
}

// grpcConn is one Decode RPC over a plain connection.
type grpcConn struct {
	stream grpc.ClientStream
	cancel context.CancelFunc
}

func newGRPCConn(c *grpc.ClientConn) (*grpcConn, error) {
	ctx, cancel := context.WithCancel(context.Background())
	s, err := c.NewStream(ctx, &grpc.StreamDesc{ClientStreams: true, ServerStreams: true}, wire.Method)
	if err != nil {
		cancel()
		return nil, err
	}
	return &grpcConn{stream: s, cancel: cancel}, nil
}

func (c *grpcConn) Send(r *wire.Request) error  { return c.stream.SendMsg(r) }
func (c *grpcConn) Recv(r *wire.Response) error { return c.stream.RecvMsg(r) }
func (c *grpcConn) Close()                      { c.cancel() }
