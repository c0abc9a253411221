package geminicli

import "strings"

// origin has the facts in a file's path:
//
//	chats/session-<time>-<8 digits>.jsonl  chats/<session>/<agent>.jsonl         Gemini CLI
//	chats/<session>.jsonl                  subagents/<session>/agent-<id>.jsonl  Qwen Code
type origin struct {
	session string // empty when the path has none
	parent  string // the folder, of a sub-agent's file the session that began it
}

func originOf(path string) (o origin) {
	parts := strings.FieldsFunc(path, func(r rune) bool { return r == '/' || r == '\\' })
	if len(parts) == 0 {
		return o
	}
	o.session, _, _ = strings.Cut(parts[len(parts)-1], ".json")
	if len(parts) > 2 && (parts[len(parts)-3] == "chats" || parts[len(parts)-3] == "subagents") {
		o.parent = parts[len(parts)-2]
	}
	return o
}
