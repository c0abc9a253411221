// Code generated from core/msg/schema; DO NOT EDIT.

package wire

import (
	"google.golang.org/protobuf/encoding/protowire"

	"github.com/earshot-dev/earshot/core/msg"
)

// appendMessage appends the fields of m that are not zero. A text that lies in data is
// encoded as its range.
func appendMessage(dst, data []byte, m *msg.Message) []byte {
	var at int
	dst = appendInt32(dst, 1, m.Frame)
	dst = appendString(dst, 2, m.Key)
	dst = appendString(dst, 3, m.Session)
	dst = appendString(dst, 4, m.Run)
	dst = appendUint(dst, 5, uint64(m.Kind))
	dst = appendUint(dst, 6, uint64(m.Role))
	dst = appendText(dst, 7, 8, data, m.Content)
	dst = appendUint(dst, 9, protowire.EncodeZigZag(m.Time))
	dst = appendUint(dst, 10, uint64(m.Precision))
	dst = appendUint(dst, 11, uint64(m.Complete))
	dst = appendString(dst, 12, m.Agent.ID)
	dst = appendString(dst, 13, m.Agent.Name)
	dst = appendString(dst, 14, m.Tool.CallID)
	dst = appendString(dst, 15, m.Tool.Name)
	dst = appendText(dst, 16, 17, data, m.Tool.Arguments)
	dst = appendString(dst, 18, m.Tool.Server)
	dst = appendString(dst, 19, m.Tool.ErrorType)
	dst = appendBool(dst, 20, m.Tool.Internal)
	dst = appendString(dst, 40, m.Tool.ProtocolID)
	dst = appendUint(dst, 21, uint64(m.Agent.Kind))
	dst = appendString(dst, 22, m.ParentKey)
	dst = appendString(dst, 23, m.ParentRun)
	dst = appendString(dst, 24, m.ParentCall)
	dst = appendString(dst, 25, m.Model)
	dst = appendString(dst, 26, m.Provider)
	dst = appendString(dst, 27, m.ResponseID)
	dst = appendString(dst, 28, m.FinishReason)
	dst = appendBool(dst, 29, m.IsError)
	dst = appendBool(dst, 30, m.Hidden)
	dst = appendUint(dst, 31, uint64(m.Signal))
	dst = appendUint(dst, 36, uint64(m.Tool.Duration))
	for i := range m.Attrs {
		e := &m.Attrs[i]
		dst, at = begin(dst, 32, 1)
		dst = appendString(dst, 1, e.Key)
		dst = appendString(dst, 2, e.Value)
		dst = end(dst, at, 1)
	}
	for i := range m.Attachments {
		e := &m.Attachments[i]
		dst, at = begin(dst, 33, 1)
		dst = appendString(dst, 1, e.Name)
		dst = appendString(dst, 2, e.MediaType)
		dst = appendUint(dst, 3, uint64(e.Size))
		dst = appendString(dst, 4, e.SHA256)
		dst = appendString(dst, 5, e.URL)
		dst = end(dst, at, 1)
	}
	dst = appendString(dst, 41, m.Client.Project)
	dst = appendString(dst, 42, m.Client.Branch)
	dst = appendString(dst, 43, m.Client.Version)
	dst = appendString(dst, 44, m.Client.Host)
	dst = appendString(dst, 45, m.Client.User)
	dst = appendString(dst, 46, m.Title)
	if e := &m.Usage; *e != (msg.Tokens{}) {
		dst, at = begin(dst, 34, 1)
		dst = appendUint(dst, 1, e.Input)
		dst = appendUint(dst, 2, e.Output)
		dst = appendUint(dst, 3, e.CacheRead)
		dst = appendUint(dst, 4, e.CacheWrite)
		dst = appendUint(dst, 5, e.Reasoning)
		dst = appendUint(dst, 6, uint64(e.Provenance))
		dst = appendUint(dst, 7, e.CacheWrite1h)
		dst = appendString(dst, 8, e.Tier)
		dst = appendUint(dst, 9, e.Stated)
		dst = end(dst, at, 1)
	}
	if e := &m.Delegation; e.To != "" || !e.Task.IsZero() || e.ChildRun != "" || e.Link != 0 || e.Confidence != 0 || e.Async || e.CorrelationID != "" || e.CorrelationPrompt != "" || e.ToID != "" {
		dst, at = begin(dst, 35, 1)
		dst = appendString(dst, 1, e.To)
		dst = appendText(dst, 2, 3, data, e.Task)
		dst = appendString(dst, 4, e.ChildRun)
		dst = appendUint(dst, 5, uint64(e.Link))
		dst = appendUint(dst, 6, uint64(e.Confidence))
		dst = appendBool(dst, 7, e.Async)
		dst = appendString(dst, 8, e.CorrelationID)
		dst = appendString(dst, 9, e.CorrelationPrompt)
		dst = appendString(dst, 10, e.ToID)
		dst = end(dst, at, 1)
	}
	return dst
}

// readMessage reads a Message; its strings are parts of s.
func (s text) readMessage(m *msg.Message, in, data []byte) error {
	for len(in) > 0 {
		num, v, n, err := next(in)
		if err != nil {
			return err
		}
		in = in[n:]
		switch num {
		case 1: // frame
			m.Frame = int32(v.num)
		case 2: // key
			m.Key = s.of(v.bytes)
		case 3: // session
			m.Session = s.of(v.bytes)
		case 4: // run
			m.Run = s.of(v.bytes)
		case 5: // kind
			m.Kind = msg.Kind(enum(v))
		case 6: // role
			m.Role = msg.Role(enum(v))
		case 7: // content
			m.Content = msg.Plain(s.of(v.bytes))
		case 8:
			m.Content, err = readRange("content", v.bytes, data)
		case 9: // time
			m.Time = protowire.DecodeZigZag(v.num)
		case 10: // precision
			m.Precision = msg.Precision(enum(v))
		case 11: // complete
			m.Complete = msg.Completeness(enum(v))
		case 12: // agent_id
			m.Agent.ID = s.of(v.bytes)
		case 13: // agent_name
			m.Agent.Name = s.of(v.bytes)
		case 14: // tool_call_id
			m.Tool.CallID = s.of(v.bytes)
		case 15: // tool_name
			m.Tool.Name = s.of(v.bytes)
		case 16: // tool_arguments
			m.Tool.Arguments = msg.Plain(s.of(v.bytes))
		case 17:
			m.Tool.Arguments, err = readRange("tool_arguments", v.bytes, data)
		case 18: // tool_server
			m.Tool.Server = s.of(v.bytes)
		case 19: // tool_error_type
			m.Tool.ErrorType = s.of(v.bytes)
		case 20: // tool_internal
			m.Tool.Internal = v.num != 0
		case 40: // tool_protocol_id
			m.Tool.ProtocolID = s.of(v.bytes)
		case 21: // agent_kind
			m.Agent.Kind = msg.AgentKind(enum(v))
		case 22: // parent_key
			m.ParentKey = s.of(v.bytes)
		case 23: // parent_run
			m.ParentRun = s.of(v.bytes)
		case 24: // parent_call
			m.ParentCall = s.of(v.bytes)
		case 25: // model
			m.Model = s.of(v.bytes)
		case 26: // provider
			m.Provider = s.of(v.bytes)
		case 27: // response_id
			m.ResponseID = s.of(v.bytes)
		case 28: // finish_reason
			m.FinishReason = s.of(v.bytes)
		case 29: // is_error
			m.IsError = v.num != 0
		case 30: // hidden
			m.Hidden = v.num != 0
		case 31: // signal
			m.Signal = msg.Signal(enum(v))
		case 36: // tool_duration
			m.Tool.Duration = int64(v.num)
		case 32: // attrs
			m.Attrs = append(m.Attrs, msg.Attr{})
			err = s.readAttr(&m.Attrs[len(m.Attrs)-1], v.bytes, data)
		case 33: // attachments
			m.Attachments = append(m.Attachments, msg.Attachment{})
			err = s.readAttachment(&m.Attachments[len(m.Attachments)-1], v.bytes, data)
		case 41: // client_project
			m.Client.Project = s.of(v.bytes)
		case 42: // client_branch
			m.Client.Branch = s.of(v.bytes)
		case 43: // client_version
			m.Client.Version = s.of(v.bytes)
		case 44: // client_host
			m.Client.Host = s.of(v.bytes)
		case 45: // client_user
			m.Client.User = s.of(v.bytes)
		case 46: // title
			m.Title = s.of(v.bytes)
		case 34: // usage
			err = s.readTokens(&m.Usage, v.bytes, data)
		case 35: // delegation
			err = s.readDelegate(&m.Delegation, v.bytes, data)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// readAttr reads a Attr; its strings are parts of s.
func (s text) readAttr(m *msg.Attr, in, data []byte) error {
	for len(in) > 0 {
		num, v, n, err := next(in)
		if err != nil {
			return err
		}
		in = in[n:]
		switch num {
		case 1: // key
			m.Key = s.of(v.bytes)
		case 2: // value
			m.Value = s.of(v.bytes)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// readAttachment reads a Attachment; its strings are parts of s.
func (s text) readAttachment(m *msg.Attachment, in, data []byte) error {
	for len(in) > 0 {
		num, v, n, err := next(in)
		if err != nil {
			return err
		}
		in = in[n:]
		switch num {
		case 1: // name
			m.Name = s.of(v.bytes)
		case 2: // media_type
			m.MediaType = s.of(v.bytes)
		case 3: // size
			m.Size = int64(v.num)
		case 4: // sha256
			m.SHA256 = s.of(v.bytes)
		case 5: // url
			m.URL = s.of(v.bytes)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// readTokens reads a Tokens; its strings are parts of s.
func (s text) readTokens(m *msg.Tokens, in, data []byte) error {
	for len(in) > 0 {
		num, v, n, err := next(in)
		if err != nil {
			return err
		}
		in = in[n:]
		switch num {
		case 1: // input
			m.Input = v.num
		case 2: // output
			m.Output = v.num
		case 3: // cache_read
			m.CacheRead = v.num
		case 4: // cache_write
			m.CacheWrite = v.num
		case 5: // reasoning
			m.Reasoning = v.num
		case 6: // provenance
			m.Provenance = msg.Provenance(enum(v))
		case 7: // cache_write1h
			m.CacheWrite1h = v.num
		case 8: // tier
			m.Tier = s.of(v.bytes)
		case 9: // stated
			m.Stated = v.num
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// readDelegate reads a Delegate; its strings are parts of s.
func (s text) readDelegate(m *msg.Delegate, in, data []byte) error {
	for len(in) > 0 {
		num, v, n, err := next(in)
		if err != nil {
			return err
		}
		in = in[n:]
		switch num {
		case 1: // to
			m.To = s.of(v.bytes)
		case 2: // task
			m.Task = msg.Plain(s.of(v.bytes))
		case 3:
			m.Task, err = readRange("task", v.bytes, data)
		case 4: // child_run
			m.ChildRun = s.of(v.bytes)
		case 5: // link
			m.Link = msg.LinkMethod(enum(v))
		case 6: // confidence
			m.Confidence = uint8(min(v.num, 100))
		case 7: // async
			m.Async = v.num != 0
		case 8: // correlation_id
			m.CorrelationID = s.of(v.bytes)
		case 9: // correlation_prompt
			m.CorrelationPrompt = s.of(v.bytes)
		case 10: // to_id
			m.ToID = s.of(v.bytes)
		}
		if err != nil {
			return err
		}
	}
	return nil
}
