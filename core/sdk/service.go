package sdk

import (
	"context"
	"encoding/json"
	"errors"
	"io"

	"google.golang.org/grpc"

	"github.com/earshot-dev/earshot/core/decoder"
	"github.com/earshot-dev/earshot/core/internal/wire"
	pb "github.com/earshot-dev/earshot/core/proto/earshot/decoder/v1"
)

// Register adds the decoder service to a gRPC server, which must have been made
// with ServerOptions.
func Register(s *grpc.Server, f decoder.Factory) {
	s.RegisterService(&grpc.ServiceDesc{
		ServiceName: "earshot.decoder.v1.Decoder",
		HandlerType: (*any)(nil),
		Methods: []grpc.MethodDesc{
			unary("Describe", func(context.Context, *pb.DescribeRequest) (*pb.DescribeResponse, error) {
				return describe(f)
			}),
			unary("Check", func(_ context.Context, r *pb.CheckRequest) (*pb.CheckResponse, error) {
				return check(f, r.GetOptions()), nil
			}),
		},
		Streams: []grpc.StreamDesc{{
			StreamName:    "Decode",
			ClientStreams: true,
			ServerStreams: true,
			Handler:       func(_ any, s grpc.ServerStream) error { return serve(f, overGRPC{s}) },
		}},
		Metadata: "earshot/decoder/v1/decoder.proto",
	}, struct{}{})
}

// unary makes a gRPC method of a function, without interceptors.
func unary[Req, Resp any](name string, call func(context.Context, *Req) (*Resp, error)) grpc.MethodDesc {
	return grpc.MethodDesc{MethodName: name, Handler: func(_ any, ctx context.Context, dec func(any) error, _ grpc.UnaryServerInterceptor) (any, error) {
		req := new(Req)
		if err := dec(req); err != nil {
			return nil, err
		}
		return call(ctx, req)
	}}
}

func describe(f decoder.Factory) (*pb.DescribeResponse, error) {
	info := f.Info()
	out := &pb.DescribeResponse{
		Name: info.Name, Version: info.Version, Revision: info.Revision, Summary: info.Summary,
		MetadataFiles: info.MetadataFiles, OptionsSchema: string(info.Options), Reload: info.Reload, LocalIds: info.LocalIDs, Documents: info.Documents,
		Resume: string(info.Resume), Pages: string(info.Pages), Tables: string(info.Tables),
	}
	for _, k := range info.Transports {
		out.Transports = append(out.Transports, pb.FrameKind(k))
	}
	if d, err := f.New(decoder.Stream{}); err == nil {
		_, out.Snapshots = d.(decoder.Snapshotter)
	}
	return out, nil
}

func check(f decoder.Factory, options string) *pb.CheckResponse {
	out := &pb.CheckResponse{}
	var raw json.RawMessage
	if options != "" {
		raw = json.RawMessage(options)
	}
	if _, err := f.New(decoder.Stream{Options: raw}); err != nil {
		var many interface{ Unwrap() []error }
		if errors.As(err, &many) {
			for _, e := range many.Unwrap() {
				out.Problems = append(out.Problems, e.Error())
			}
		} else {
			out.Problems = append(out.Problems, err.Error())
		}
	}
	return out
}

// caller is the host's end of one Decode call.
type caller interface {
	Recv(*wire.Request) error
	Send(*wire.Response) error
}

type overGRPC struct{ grpc.ServerStream }

func (s overGRPC) Recv(r *wire.Request) error  { return s.RecvMsg(r) }
func (s overGRPC) Send(r *wire.Response) error { return s.SendMsg(r) }

// serve answers one Decode call. All its streams are decoded in this goroutine; the host
// opens as many calls as decoders are to run side by side.
func serve(f decoder.Factory, c caller) error {
	l := decodeCall{factory: f, streams: make(map[uint64]decoder.Decoder)}
	var req wire.Request
	var resp wire.Response
	defer req.Free()
	for {
		if err := c.Recv(&req); err != nil {
			if errors.Is(err, io.EOF) {
				return nil
			}
			return err
		}
		resp.Reset()
		for i := range req.Batches {
			l.batch(&req.Batches[i], &resp)
		}
		req.Free()
		if err := c.Send(&resp); err != nil {
			return err
		}
	}
}
