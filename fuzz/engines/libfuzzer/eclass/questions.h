/*
 * Operations of the harness that are look-ups, see questions.c.
 */
#ifndef QUESTIONS_H
#define QUESTIONS_H

extern void op_find_members(void);
extern void op_find_matching_member(void);
extern void op_find_computable_member(void);
extern void op_find_sort_class(void);
extern void op_find_join_clauses(void);
extern void op_find_column_clauses(void);
extern void op_ask_class(void);
extern void op_ask_join(void);

extern Oid	some_collation(Expr *expr);

#endif
