package legion

import (
	"github.com/earshot-dev/earshot/core/sdk/jsonv"
)

// head has the members that any record may have. It is read in one pass, as
// most of a decoder's work is looking for members that are not there.
type head struct {
	typ, stored, id, session, timestamp, content, metadata, data, parent, comm jsonv.Value
}

func headOf(v jsonv.Value) (h head) {
	for k, m := range v.Members() {
		switch string(k.Bytes()) {
		case "type":
			h.typ = m
		case "_type":
			h.stored = m
		case "message_id":
			h.id = m
		case "session_id":
			h.session = m
		case "timestamp":
			h.timestamp = m
		case "content":
			h.content = m
		case "metadata":
			h.metadata = m
		case "data":
			h.data = m
		case "parent_tool_use_id":
			h.parent = m
		case "comm_id":
			h.comm = m
		}
	}
	return h
}

// block has the members of a content block, or of an entry of tool_uses or
// tool_results.
type block struct {
	text, thinking, id, name, input, toolUse, content, isError, source, timestamp jsonv.Value
}

func blockOf(v jsonv.Value) (b block) {
	for k, m := range v.Members() {
		switch string(k.Bytes()) {
		case "text":
			b.text = m
		case "thinking":
			b.thinking = m
		case "id":
			b.id = m
		case "name":
			b.name = m
		case "input":
			b.input = m
		case "tool_use_id":
			b.toolUse = m
		case "content":
			b.content = m
		case "is_error":
			b.isError = m
		case "source":
			b.source = m
		case "timestamp":
			b.timestamp = m
		case "signature":
			m.MarkRead()
		}
	}
	return b
}

// answer has the members of a message of the model: of metadata in generation 1, of data in
// generation 2.
type answer struct {
	model, response, parent, uuid, usage, fault, content   jsonv.Value
	toolUses, toolResults, thinkingBlocks, thinkingContent jsonv.Value
	toolUseResult, session, sdk                            jsonv.Value
}

func answerOf(v jsonv.Value) (a answer) {
	for k, m := range v.Members() {
		switch string(k.Bytes()) {
		case "model":
			a.model = m
		case "message_id":
			if !a.response.Exists() {
				a.response = m
			}
		case "turn_id":
			a.response = m
		case "parent_tool_use_id":
			a.parent = m
		case "uuid":
			a.uuid = m
		case "usage":
			a.usage = m
		case "error":
			a.fault = m
		case "content":
			a.content = m
		case "tool_uses":
			a.toolUses = m
		case "tool_results":
			a.toolResults = m
		case "thinking_blocks":
			a.thinkingBlocks = m
		case "thinking_content":
			a.thinkingContent = m
		case "tool_use_result":
			a.toolUseResult = m
			m.MarkRead()
		case "session_id":
			a.session = m
		case "raw_sdk_message":
			a.sdk = m
		}
	}
	return a
}
