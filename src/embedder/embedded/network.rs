//! The network: six layers of attention over the pieces of one text, and the mean of what comes out, brought to length one.

use ndarray::linalg::general_mat_mul;
use ndarray::{Array1, Array2, ArrayView1, Axis, Slice};
use safetensors::{Dtype, SafeTensors};

/// Numbers of one piece, and of the vector of a text.
pub(super) const WIDTH: usize = 384;
const LAYERS: usize = 6;
const HEADS: usize = 12;
/// Numbers of one piece that one head looks at.
const HEAD: usize = WIDTH / HEADS;
/// Keeps a spread of zero from dividing by zero.
const EPSILON: f32 = 1e-12;

/// What is wrong with a file of weights.
type Fault = String;

/// `x · weightᵀ + bias`.
struct Linear {
    weight: Array2<f32>,
    bias: Array1<f32>,
}

/// Brings each row to mean 0 and spread 1, then scales and shifts it.
struct Norm {
    scale: Array1<f32>,
    shift: Array1<f32>,
}

struct Layer {
    query: Linear,
    key: Linear,
    value: Linear,
    attended: Linear,
    attended_norm: Norm,
    wide: Linear,
    narrow: Linear,
    norm: Norm,
}

/// The whole network.
pub(super) struct Network {
    words: Array2<f32>,
    positions: Array2<f32>,
    kind: Array1<f32>,
    norm: Norm,
    layers: Vec<Layer>,
}

/// Tensors of a file, by name.
struct Tensors<'a>(SafeTensors<'a>);

impl Tensors<'_> {
    fn numbers(&self, name: &str) -> Result<(Vec<usize>, Vec<f32>), Fault> {
        let tensor = self.0.tensor(name).map_err(|error| error.to_string())?;
        if tensor.dtype() != Dtype::F32 {
            return Err(format!("{name} does not hold f32"));
        }
        let (numbers, _) = tensor.data().as_chunks::<4>();
        let numbers = numbers.iter().map(|bytes| f32::from_le_bytes(*bytes));
        Ok((tensor.shape().to_vec(), numbers.collect()))
    }

    fn vector(&self, name: &str) -> Result<Array1<f32>, Fault> {
        self.numbers(name).map(|(_, numbers)| numbers.into())
    }

    fn matrix(&self, name: &str) -> Result<Array2<f32>, Fault> {
        let (shape, numbers) = self.numbers(name)?;
        let [rows, columns] = shape.as_slice() else {
            return Err(format!("{name} is no matrix"));
        };
        Array2::from_shape_vec((*rows, *columns), numbers).map_err(|error| error.to_string())
    }

    fn linear(&self, name: &str) -> Result<Linear, Fault> {
        Ok(Linear {
            weight: self.matrix(&format!("{name}.weight"))?,
            bias: self.vector(&format!("{name}.bias"))?,
        })
    }

    fn norm(&self, name: &str) -> Result<Norm, Fault> {
        Ok(Norm {
            scale: self.vector(&format!("{name}.weight"))?,
            shift: self.vector(&format!("{name}.bias"))?,
        })
    }

    fn layer(&self, number: usize) -> Result<Layer, Fault> {
        let name = |part: &str| format!("encoder.layer.{number}.{part}");
        Ok(Layer {
            query: self.linear(&name("attention.self.query"))?,
            key: self.linear(&name("attention.self.key"))?,
            value: self.linear(&name("attention.self.value"))?,
            attended: self.linear(&name("attention.output.dense"))?,
            attended_norm: self.norm(&name("attention.output.LayerNorm"))?,
            wide: self.linear(&name("intermediate.dense"))?,
            narrow: self.linear(&name("output.dense"))?,
            norm: self.norm(&name("output.LayerNorm"))?,
        })
    }
}

impl Linear {
    fn of(&self, input: &Array2<f32>) -> Array2<f32> {
        let mut output = Array2::zeros((input.nrows(), self.weight.nrows()));
        output += &self.bias;
        general_mat_mul(1.0, input, &self.weight.t(), 1.0, &mut output);
        output
    }
}

impl Norm {
    fn apply(&self, rows: &mut Array2<f32>) {
        for mut row in rows.rows_mut() {
            let mean = row.mean().unwrap_or_default();
            let spread = row.fold(0.0, |sum, number| sum + (number - mean).powi(2));
            let by = 1.0 / (spread / width() + EPSILON).sqrt();
            for ((number, scale), shift) in row.iter_mut().zip(&self.scale).zip(&self.shift) {
                *number = (*number - mean) * by * scale + shift;
            }
        }
    }
}

impl Layer {
    fn of(&self, input: &Array2<f32>) -> Array2<f32> {
        let (query, key) = (self.query.of(input), self.key.of(input));
        let value = self.value.of(input);
        let count = input.nrows();
        let mut context = Array2::zeros((count, WIDTH));
        let mut weights = Array2::zeros((count, count));
        for head in 0..HEADS {
            let part = Slice::from(head * HEAD..(head + 1) * HEAD);
            let (query, key) = (
                query.slice_axis(Axis(1), part),
                key.slice_axis(Axis(1), part),
            );
            general_mat_mul(head_scale(), &query, &key.t(), 0.0, &mut weights);
            for mut row in weights.rows_mut() {
                let most = row.fold(f32::MIN, |most, number| most.max(*number));
                row.mapv_inplace(|number| (number - most).exp());
                let sum = row.sum();
                row /= sum;
            }
            let value = value.slice_axis(Axis(1), part);
            let mut context = context.slice_axis_mut(Axis(1), part);
            general_mat_mul(1.0, &weights, &value, 0.0, &mut context);
        }
        let mut attended = self.attended.of(&context);
        attended += input;
        self.attended_norm.apply(&mut attended);
        let mut wide = self.wide.of(&attended);
        wide.mapv_inplace(gelu);
        let mut output = self.narrow.of(&wide);
        output += &attended;
        self.norm.apply(&mut output);
        output
    }
}

impl Network {
    /// Reads a file of safetensors.
    pub(super) fn read(bytes: &[u8]) -> Result<Self, Fault> {
        let tensors = SafeTensors::deserialize(bytes).map_err(|error| error.to_string())?;
        let tensors = Tensors(tensors);
        let layers = (0..LAYERS).map(|number| tensors.layer(number));
        let kinds = tensors.matrix("embeddings.token_type_embeddings.weight")?;
        let kind = kinds.rows().into_iter().next();
        let network = Self {
            words: tensors.matrix("embeddings.word_embeddings.weight")?,
            positions: tensors.matrix("embeddings.position_embeddings.weight")?,
            kind: kind.ok_or("no kind of text")?.to_owned(),
            norm: tensors.norm("embeddings.LayerNorm")?,
            layers: layers.collect::<Result<_, _>>()?,
        };
        if network.words.ncols() == WIDTH && network.positions.ncols() == WIDTH {
            Ok(network)
        } else {
            Err(format!("its vectors do not have {WIDTH} numbers"))
        }
    }

    /// The vector of a text, given its pieces; `None` when there are none, or some that are unknown here.
    pub(super) fn embed(&self, pieces: &[u32]) -> Option<Vec<f32>> {
        let mut state = Array2::zeros((pieces.len(), WIDTH));
        let rows = state.rows_mut().into_iter();
        for ((mut row, piece), position) in rows.zip(pieces).zip(self.positions.rows()) {
            row += &position;
            row += &self.word(*piece)?;
            row += &self.kind;
        }
        self.norm.apply(&mut state);
        for layer in &self.layers {
            state = layer.of(&state);
        }
        let mut mean = state.mean_axis(Axis(0))?;
        let length = mean.dot(&mean).sqrt();
        mean /= length;
        Some(mean.to_vec())
    }

    fn word(&self, piece: u32) -> Option<ArrayView1<'_, f32>> {
        let place = usize::try_from(piece).ok()?;
        (place < self.words.nrows()).then(|| self.words.row(place))
    }
}

#[expect(clippy::cast_precision_loss, reason = "384")]
const fn width() -> f32 {
    WIDTH as f32
}

/// One over the square root of what a head looks at.
#[expect(clippy::cast_precision_loss, reason = "32")]
fn head_scale() -> f32 {
    1.0 / (HEAD as f32).sqrt()
}

/// The error function's share of a number (GELU), with the error function to 1.5e-7 (Abramowitz and Stegun, 7.1.26).
#[expect(
    clippy::cast_possible_truncation,
    reason = "f32 is what the network computes in"
)]
fn gelu(number: f32) -> f32 {
    let x = f64::from(number.abs()) / std::f64::consts::SQRT_2;
    let t = 1.0 / (1.0 + 0.327_591_1 * x);
    let polynomial = [
        1.061_405_429,
        -1.453_152_027,
        1.421_413_741,
        -0.284_496_736,
        0.254_829_592,
    ]
    .iter()
    .fold(0.0, |sum, factor| (sum + factor) * t);
    let erf = (1.0 - polynomial * (-x * x).exp()) as f32;
    0.5 * number * (1.0 + erf.copysign(number))
}
