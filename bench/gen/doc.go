// Package gen generates Legion traffic of any size, and an account of the messages in it.
// The same options produce the same bytes.
//
// It is a specification of the decoder in plugins/legion, written without it: the account is
// kept while a conversation is generated and never read from its lines. A test in
// plugins/legion decodes a corpus and compares; a benchmark of the whole pipeline compares
// with the tables:
//
//	SELECT kind, count() FROM messages FINAL WHERE session_id = … GROUP BY kind
//	SELECT sum(length(content)), sum(halfMD5(content)) FROM messages FINAL WHERE content != ''
//	SELECT sum(input_tokens), sum(output_tokens), … FROM messages FINAL
//
// # Messages of a line
//
// The table lists the messages of each kind of line with their content; a message without one
// in parentheses has none.
//
//	line                                     messages (content)
//	system client_launched, init, status,    1 status (the line's text, unless it is a placeholder: "System init: <id>")
//	hook_*, compact_boundary, api_retry,
//	interrupt
//	system of another subtype, with a text   1 system (the text)
//	system interrupt_success                 1 stop (the line's text)
//	user, a prompt or a minion's message     1 user (all of it, headline included)
//	user, tool results                       1 tool_result for each (its text); no message has the line's "Tool results: N results"
//	assistant                                1 reasoning for each thought (the thought), thinking_content is the same again;
//	                                         1 assistant for the text (the text), none for "Assistant response" or no text;
//	                                         1 tool_call for each call
//	a call of Task, Agent, send_comm,        1 delegation instead of tool_call, 1 delegation_result instead of tool_result;
//	send_comm_to_channel, spawn_minion       of a call in the background the first result is 1 status (its text) and the
//	                                         task's notification is the delegation_result (its summary)
//	tool call update                         pending: the call, if no line had it before; awaiting_permission: 1 status;
//	                                         running or an end, after waiting: 1 status; completed, failed, interrupted: the
//	                                         result, if no line had it before; denied: the same, without a text: when a
//	                                         user line brings the text, that is still the one message
//	result                                   1 stop (its text only if the turn failed: else it repeats the last one),
//	                                         1 usage, if it has tokens; if not, 1 usage with those of the turn's responses
//	task_started, task_progress              1 status (its description)
//	of an unknown type                       1 unknown (the whole line)
//	blank                                    nothing
//	broken                                   nothing, and 1 problem
//	the same as the line before              nothing more
//
// A turn that ends without a result line has one usage message all the same, if its responses
// have their tokens: for each response the highest count of each class, added up. So has every
// sub-agent's run.
//
// tool_calls has a row for each distinct call, delegations included; a result without a call
// (an orphan) has no row there.
package gen
