//! Small systems of linear equations.

/// The solution x of A x = b by elimination with row exchanges, A by rows. `None` where A is
/// singular. There are as many rows and columns as entries in `b`.
pub(crate) fn solve(mut a: Vec<Vec<f64>>, mut b: Vec<f64>) -> Option<Vec<f64>> {
    let n = b.len();
    for column in 0..n {
        let pivot = (column..n).max_by(|i, j| a[*i][column].abs().total_cmp(&a[*j][column].abs()))?;
        if a[pivot][column] == 0.0 || !a[pivot][column].is_finite() {
            return None;
        }
        a.swap(column, pivot);
        b.swap(column, pivot);
        let (done, rest) = a.split_at_mut(column + 1);
        let pivot_row = &done[column];
        for (offset, row) in rest.iter_mut().enumerate() {
            let factor = row[column] / pivot_row[column];
            if factor != 0.0 {
                for (entry, above) in row[column..].iter_mut().zip(&pivot_row[column..]) {
                    *entry -= factor * above;
                }
                b[column + 1 + offset] -= factor * b[column];
            }
        }
    }
    for row in (0..n).rev() {
        let known: f64 = (row + 1..n).map(|column| a[row][column] * b[column]).sum();
        b[row] = (b[row] - known) / a[row][row];
    }
    Some(b)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_system_that_needs_a_row_exchange_is_solved() {
        // 2y = 4; 3x + y = 5
        assert_eq!(solve(vec![vec![0.0, 2.0], vec![3.0, 1.0]], vec![4.0, 5.0]), Some(vec![1.0, 2.0]));
    }

    #[test]
    fn a_singular_system_has_no_solution() {
        assert_eq!(solve(vec![vec![1.0, 2.0], vec![2.0, 4.0]], vec![1.0, 2.0]), None);
    }
}
