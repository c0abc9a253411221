package wire

import (
	"google.golang.org/protobuf/encoding/protowire"

	"github.com/earshot-dev/earshot/core/frame"
	"github.com/earshot-dev/earshot/core/msg"
)

// Field numbers of Message.
const (
	mFrame           = 1
	mKey             = 2
	mSession         = 3
	mRun             = 4
	mKind            = 5
	mRole            = 6
	mContent         = 7
	mContentAt       = 8
	mTime            = 9
	mPrecision       = 10
	mComplete        = 11
	mAgentID         = 12
	mAgentName       = 13
	mToolCallID      = 14
	mToolName        = 15
	mToolArguments   = 16
	mToolArgumentsAt = 17
	mToolServer      = 18
	mToolErrorType   = 19
	mToolInternal    = 20
	mAgentKind       = 21
	mParentKey       = 22
	mParentRun       = 23
	mParentCall      = 24
	mModel           = 25
	mProvider        = 26
	mResponseID      = 27
	mFinishReason    = 28
	mIsError         = 29
	mHidden          = 30
	mSignal          = 31
	mAttrs           = 32
	mAttachments     = 33
	mUsage           = 34
	mDelegation      = 35
	mToolDuration    = 36
	mToolProtocolID  = 40
)

// Field numbers of the messages within Message.
const (
	attrKey   = 1
	attrValue = 2

	attName      = 1
	attMediaType = 2
	attSize      = 3
	attSHA256    = 4
	attURL       = 5

	tokInput      = 1
	tokOutput     = 2
	tokCacheRead  = 3
	tokCacheWrite = 4
	tokReasoning  = 5
	tokProvenance = 6

	delTo         = 1
	delTask       = 2
	delTaskAt     = 3
	delChildRun   = 4
	delLink       = 5
	delConfidence = 6
	delAsync      = 7
	delMeetID     = 8
	delMeetPrompt = 9
	delToID       = 10

	rangeOffset = 1
	rangeLength = 2
	rangeQuoted = 3
)

func appendMessage(dst, data []byte, m *msg.Message) []byte {
	dst = appendInt32(dst, mFrame, m.Frame)
	dst = appendString(dst, mKey, m.Key)
	dst = appendString(dst, mSession, m.Session)
	dst = appendString(dst, mRun, m.Run)
	dst = appendUint(dst, mKind, uint64(m.Kind))
	dst = appendUint(dst, mRole, uint64(m.Role))
	dst = appendText(dst, mContent, mContentAt, data, m.Content)
	dst = appendUint(dst, mTime, protowire.EncodeZigZag(m.Time))
	dst = appendUint(dst, mPrecision, uint64(m.Precision))
	dst = appendUint(dst, mComplete, uint64(m.Complete))
	dst = appendString(dst, mAgentID, m.Agent.ID)
	dst = appendString(dst, mAgentName, m.Agent.Name)
	dst = appendString(dst, mToolCallID, m.Tool.CallID)
	dst = appendString(dst, mToolName, m.Tool.Name)
	dst = appendText(dst, mToolArguments, mToolArgumentsAt, data, m.Tool.Arguments)
	dst = appendString(dst, mToolServer, m.Tool.Server)
	dst = appendString(dst, mToolErrorType, m.Tool.ErrorType)
	dst = appendBool(dst, mToolInternal, m.Tool.Internal)
	dst = appendString(dst, mToolProtocolID, m.Tool.ProtocolID)
	dst = appendUint(dst, mAgentKind, uint64(m.Agent.Kind))
	dst = appendString(dst, mParentKey, m.ParentKey)
	dst = appendString(dst, mParentRun, m.ParentRun)
	dst = appendString(dst, mParentCall, m.ParentCall)
	dst = appendString(dst, mModel, m.Model)
	dst = appendString(dst, mProvider, m.Provider)
	dst = appendString(dst, mResponseID, m.ResponseID)
	dst = appendString(dst, mFinishReason, m.FinishReason)
	dst = appendBool(dst, mIsError, m.IsError)
	dst = appendBool(dst, mHidden, m.Hidden)
	dst = appendUint(dst, mSignal, uint64(m.Signal))
	dst = appendUint(dst, mToolDuration, uint64(m.Tool.Duration))
	var at int
	for i := range m.Attrs {
		dst, at = begin(dst, mAttrs, 1)
		dst = appendString(dst, attrKey, m.Attrs[i].Key)
		dst = appendString(dst, attrValue, m.Attrs[i].Value)
		dst = end(dst, at, 1)
	}
	for i := range m.Attachments {
		a := &m.Attachments[i]
		dst, at = begin(dst, mAttachments, 1)
		dst = appendString(dst, attName, a.Name)
		dst = appendString(dst, attMediaType, a.MediaType)
		dst = appendUint(dst, attSize, uint64(a.Size))
		dst = appendString(dst, attSHA256, a.SHA256)
		dst = appendString(dst, attURL, a.URL)
		dst = end(dst, at, 1)
	}
	if u := &m.Usage; *u != (msg.Tokens{}) {
		dst, at = begin(dst, mUsage, 1)
		dst = appendUint(dst, tokInput, u.Input)
		dst = appendUint(dst, tokOutput, u.Output)
		dst = appendUint(dst, tokCacheRead, u.CacheRead)
		dst = appendUint(dst, tokCacheWrite, u.CacheWrite)
		dst = appendUint(dst, tokReasoning, u.Reasoning)
		dst = appendUint(dst, tokProvenance, uint64(u.Provenance))
		dst = end(dst, at, 1)
	}
	if d := &m.Delegation; d.To != "" || d.ChildRun != "" || d.Link != 0 || d.Async || !d.Task.IsZero() || d.CorrelationID != "" || d.CorrelationPrompt != "" || d.ToID != "" {
		dst, at = begin(dst, mDelegation, 1)
		dst = appendString(dst, delTo, d.To)
		dst = appendText(dst, delTask, delTaskAt, data, d.Task)
		dst = appendString(dst, delChildRun, d.ChildRun)
		dst = appendUint(dst, delLink, uint64(d.Link))
		dst = appendUint(dst, delConfidence, uint64(d.Confidence))
		dst = appendBool(dst, delAsync, d.Async)
		dst = appendString(dst, delMeetID, d.CorrelationID)
		dst = appendString(dst, delMeetPrompt, d.CorrelationPrompt)
		dst = appendString(dst, delToID, d.ToID)
		dst = end(dst, at, 1)
	}
	return dst
}

// appendText sends a text as a range when it lies in the batch's data, and as a
// value otherwise.
func appendText(dst []byte, num, numAt protowire.Number, data []byte, t msg.Text) []byte {
	if t.IsZero() {
		return dst
	}
	if raw, quoted := t.Alias(); len(raw) > 0 {
		if off, ok := frame.Offset(data, raw); ok {
			dst, at := begin(dst, numAt, 1)
			dst = appendUint(dst, rangeOffset, uint64(off))
			dst = appendUint(dst, rangeLength, uint64(len(raw)))
			dst = appendBool(dst, rangeQuoted, quoted)
			return end(dst, at, 1)
		}
	}
	return appendString(dst, num, t.String())
}

func (s text) message(m *msg.Message, in, data []byte) error {
	return fields(in, func(num protowire.Number, v value) error {
		var err error
		switch num {
		case mFrame:
			m.Frame = int32(v.num)
		case mKey:
			m.Key = s.of(v.bytes)
		case mSession:
			m.Session = s.of(v.bytes)
		case mRun:
			m.Run = s.of(v.bytes)
		case mKind:
			m.Kind = msg.Kind(enum(v))
		case mRole:
			m.Role = msg.Role(enum(v))
		case mContent:
			m.Content = msg.Plain(s.of(v.bytes))
		case mContentAt:
			m.Content, err = readRange("content", v.bytes, data)
		case mTime:
			m.Time = protowire.DecodeZigZag(v.num)
		case mPrecision:
			m.Precision = msg.Precision(enum(v))
		case mComplete:
			m.Complete = msg.Completeness(enum(v))
		case mAgentID:
			m.Agent.ID = s.of(v.bytes)
		case mAgentName:
			m.Agent.Name = s.of(v.bytes)
		case mToolCallID:
			m.Tool.CallID = s.of(v.bytes)
		case mToolProtocolID:
			m.Tool.ProtocolID = s.of(v.bytes)
		case mToolName:
			m.Tool.Name = s.of(v.bytes)
		case mToolArguments:
			m.Tool.Arguments = msg.Plain(s.of(v.bytes))
		case mToolArgumentsAt:
			m.Tool.Arguments, err = readRange("tool_arguments", v.bytes, data)
		case mToolServer:
			m.Tool.Server = s.of(v.bytes)
		case mToolErrorType:
			m.Tool.ErrorType = s.of(v.bytes)
		case mToolDuration:
			m.Tool.Duration = int64(v.num)
		case mToolInternal:
			m.Tool.Internal = v.num != 0
		case mAgentKind:
			m.Agent.Kind = msg.AgentKind(enum(v))
		case mParentKey:
			m.ParentKey = s.of(v.bytes)
		case mParentRun:
			m.ParentRun = s.of(v.bytes)
		case mParentCall:
			m.ParentCall = s.of(v.bytes)
		case mModel:
			m.Model = s.of(v.bytes)
		case mProvider:
			m.Provider = s.of(v.bytes)
		case mResponseID:
			m.ResponseID = s.of(v.bytes)
		case mFinishReason:
			m.FinishReason = s.of(v.bytes)
		case mIsError:
			m.IsError = v.num != 0
		case mHidden:
			m.Hidden = v.num != 0
		case mSignal:
			m.Signal = msg.Signal(enum(v))
		case mAttrs:
			var a msg.Attr
			err = fields(v.bytes, func(num protowire.Number, v value) error {
				switch num {
				case attrKey:
					a.Key = s.of(v.bytes)
				case attrValue:
					a.Value = s.of(v.bytes)
				}
				return nil
			})
			m.Attrs = append(m.Attrs, a)
		case mAttachments:
			var a msg.Attachment
			err = fields(v.bytes, func(num protowire.Number, v value) error {
				switch num {
				case attName:
					a.Name = s.of(v.bytes)
				case attMediaType:
					a.MediaType = s.of(v.bytes)
				case attSize:
					a.Size = int64(v.num)
				case attSHA256:
					a.SHA256 = s.of(v.bytes)
				case attURL:
					a.URL = s.of(v.bytes)
				}
				return nil
			})
			m.Attachments = append(m.Attachments, a)
		case mUsage:
			err = readTokens(&m.Usage, v.bytes)
		case mDelegation:
			err = s.delegate(&m.Delegation, v.bytes, data)
		}
		return err
	})
}

// enum is an enumerated value in one byte; what does not fit is a value of a
// newer protocol, and msg.Validate refuses it.
func enum(v value) uint8 { return uint8(min(v.num, 255)) }

func readTokens(u *msg.Tokens, in []byte) error {
	return fields(in, func(num protowire.Number, v value) error {
		switch num {
		case tokInput:
			u.Input = v.num
		case tokOutput:
			u.Output = v.num
		case tokCacheRead:
			u.CacheRead = v.num
		case tokCacheWrite:
			u.CacheWrite = v.num
		case tokReasoning:
			u.Reasoning = v.num
		case tokProvenance:
			u.Provenance = msg.Provenance(enum(v))
		}
		return nil
	})
}

func (s text) delegate(d *msg.Delegate, in, data []byte) error {
	return fields(in, func(num protowire.Number, v value) error {
		var err error
		switch num {
		case delTo:
			d.To = s.of(v.bytes)
		case delTask:
			d.Task = msg.Plain(s.of(v.bytes))
		case delTaskAt:
			d.Task, err = readRange("task", v.bytes, data)
		case delChildRun:
			d.ChildRun = s.of(v.bytes)
		case delLink:
			d.Link = msg.LinkMethod(enum(v))
		case delConfidence:
			d.Confidence = uint8(min(v.num, 100))
		case delAsync:
			d.Async = v.num != 0
		case delMeetID:
			d.CorrelationID = s.of(v.bytes)
		case delMeetPrompt:
			d.CorrelationPrompt = s.of(v.bytes)
		case delToID:
			d.ToID = s.of(v.bytes)
		}
		return err
	})
}

func readRange(what string, in, data []byte) (msg.Text, error) {
	var off, length uint64
	var quoted bool
	err := fields(in, func(num protowire.Number, v value) error {
		switch num {
		case rangeOffset:
			off = v.num
		case rangeLength:
			length = v.num
		case rangeQuoted:
			quoted = v.num != 0
		}
		return nil
	})
	if err != nil {
		return msg.Text{}, err
	}
	if off > uint64(len(data)) || length > uint64(len(data))-off {
		return msg.Text{}, rangeError(what, off, length, len(data))
	}
	b := data[off : off+length]
	if quoted {
		return msg.Quoted(b), nil
	}
	return msg.Raw(b), nil
}
