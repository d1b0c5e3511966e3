//! Operations on numbers: `&`, `|`, `^`, `<<`, `>>`.

use super::{Expr, Operator};
use crate::text::Printer;
use crate::types::{INTEGER, Kind, RAW, Value};

/// Makes an operation; of two constants what it comes to, a constant on the right otherwise.
pub fn fold(op: Operator, left: Expr, right: Expr) -> Expr {
    if let (Expr::Value(a), Some(x), Some(y)) = (&left, left.as_number(), right.as_number())
        && let Some(value) = op.apply(x, y)
    {
        if a.ty.kind == Kind::Named && op == Operator::Left && value >> a.ty.bits != 0 {
            return Expr::number(&RAW, value);
        }
        let width = a.ty.bits;
        let kept = if width == 0 || width >= 128 { value } else { value & ((1 << width) - 1) };
        return Expr::Value(Value::number(a.ty, kept));
    }
    // A number after something read is of its type.
    let right = match right {
        Expr::Value(value)
            if value.ty == &INTEGER && !matches!(op, Operator::Left | Operator::Right) =>
        {
            Expr::Value(Value { ty: left.ty(), ..value })
        }
        other => other,
    };
    let commutes = !matches!(op, Operator::Left | Operator::Right);
    if commutes && left.as_number().is_some() && right.as_number().is_none() {
        return Expr::Binary(op, Box::new((right, left)));
    }
    Expr::Binary(op, Box::new((left, right)))
}

impl Expr {
    /// Writes an operation.
    pub(super) fn print_operation(&self, op: Operator, pair: &(Self, Self), p: &mut Printer) {
        print(op, pair, p);
    }

    /// Shows the operands of an operation.
    pub(super) fn each_operand(
        &self,
        op: Operator,
        pair: &(Self, Self),
        show: &mut dyn FnMut(&Self),
    ) {
        flatten(op, pair, show);
    }
}

/// Shows the operands of operations of one kind within each other, which JSON has in one list.
fn flatten(op: Operator, pair: &(Expr, Expr), show: &mut dyn FnMut(&Expr)) {
    match &pair.0 {
        Expr::Binary(inner, pair)
            if *inner == op && !matches!(op, Operator::Left | Operator::Right) =>
        {
            flatten(op, pair, show);
        }
        left => show(left),
    }
    show(&pair.1);
}

/// Writes an operation, with parentheses where an operand binds less.
fn print(op: Operator, pair: &(Expr, Expr), p: &mut Printer) {
    operand(op, &pair.0, p, false);
    p.put(&format!(" {} ", op.name()));
    operand(op, &pair.1, p, true);
}

fn operand(op: Operator, of: &Expr, p: &mut Printer, right: bool) {
    match of {
        Expr::Binary(inner, _) => {
            let least = inner.binding() < op.binding() || right && inner.binding() == op.binding();
            p.put(if least { "(" } else { "" });
            of.print(p);
            p.put(if least { ")" } else { "" });
        }
        Expr::Value(value) if value.ty.kind == Kind::Bits && op != Operator::Or => {
            print_bits(value, p)
        }
        _ => of.print(p),
    }
}

/// Writes bits with names as an operand: `(syn | ack)`.
fn print_bits(value: &Value, p: &mut Printer) {
    let mut text = String::new();
    value.print(&mut text, p.style);
    if text.contains(',') {
        p.put(&format!("({})", text.replace(',', " | ")));
    } else {
        p.put(&text);
    }
}
